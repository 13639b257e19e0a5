package segments

// The tables of section 2 of the Plasm evidence format.

var scopeFields = []field[Scope]{
	{"schema_version", required, func(c *cursor, s *Scope) error { return c.u32(&s.SchemaVersion) }},
	{"tenant_id", defaulted, readTenant},
	{"logical_session_id", optional, func(c *cursor, s *Scope) error { return c.optStr(&s.LogicalSessionID) }},
	{"prompt_hash", required, func(c *cursor, s *Scope) error { return c.str(&s.PromptHash) }},
	{"execute_session_id", required, func(c *cursor, s *Scope) error { return c.str(&s.ExecuteSessionID) }},
	{"catalog_cgs_hash", required, func(c *cursor, s *Scope) error { return c.str(&s.CatalogCGSHash) }},
	{"domain_revision", required, func(c *cursor, s *Scope) error { return c.u32(&s.DomainRevision) }},
	{"entry_id", required, func(c *cursor, s *Scope) error { return c.str(&s.EntryID) }},
}

func readTenant(c *cursor, s *Scope) error {
	c.space()
	start := c.pos
	if err := c.str(&s.TenantID); err != nil {
		return err
	}
	if s.TenantID == "" {
		c.report(EmptyOptional, start)
	}
	return nil
}

var segmentFields = []field[Segment]{
	{"seq", required, func(c *cursor, s *Segment) error { return c.u64(&s.Seq) }},
	{"prev", optional, readPrev},
	{"kind", required, func(c *cursor, s *Segment) (err error) { s.Kind, err = decodeKind(c); return err }},
	{"emitted_at_ms", optional, readTime},
}

var anchorFields = []field[Anchors]{
	{"plan_commit_ref", optional, func(c *cursor, a *Anchors) error { return c.optStr(&a.PlanCommitRef) }},
	{"trace_id", optional, func(c *cursor, a *Anchors) error { return c.uuid(&a.TraceID) }},
	{"plan_call_index", optional, func(c *cursor, a *Anchors) error { return c.optU64(&a.PlanCallIndex) }},
}

var signatureFields = []field[Signature]{
	{"public_key_hex", required, func(c *cursor, s *Signature) error { return c.hexText(&s.PublicKeyHex, 64) }},
	{"signature_hex", required, func(c *cursor, s *Signature) error { return c.hexText(&s.SignatureHex, 128) }},
}

// The tag was looked up before the rest of a kind is read.
func passTag[T any](c *cursor, _ *T) error { return c.skip() }

var intentFields = []field[IntentBound]{
	{"kind", required, passTag[IntentBound]},
	{"intent_digest", required, func(c *cursor, k *IntentBound) error { return c.digest(&k.IntentDigest) }},
	{"intent_len", required, func(c *cursor, k *IntentBound) error { return c.u32(&k.IntentLen) }},
}

var compFields = []field[CompCommitted]{
	{"kind", required, passTag[CompCommitted]},
	{"plan_commit_id_hex", required, func(c *cursor, k *CompCommitted) error { return c.str(&k.PlanCommitIDHex) }},
	{"comp_semantic_sha256", required, func(c *cursor, k *CompCommitted) error { return c.digest(&k.CompSemanticSHA256) }},
	{"step_topo", required, func(c *cursor, k *CompCommitted) error { return c.strs(&k.StepTopo) }},
}

var stepFields = []field[StepExecuted]{
	{"kind", required, passTag[StepExecuted]},
	{"step_id", required, func(c *cursor, k *StepExecuted) error { return c.str(&k.StepID) }},
	{"step_index", required, func(c *cursor, k *StepExecuted) error { return c.u32(&k.StepIndex) }},
	{"entry_id", optional, readEntry},
	{"request_fingerprints", required, func(c *cursor, k *StepExecuted) error { return c.strs(&k.RequestFingerprints) }},
	{"source_line", required, func(c *cursor, k *StepExecuted) error { return c.str(&k.SourceLine) }},
	{"parsed_expr_digest", required, func(c *cursor, k *StepExecuted) error { return c.digest(&k.ParsedExprDigest) }},
}

var sealFields = []field[RunSealed]{
	{"kind", required, passTag[RunSealed]},
	{"run_id", required, func(c *cursor, k *RunSealed) error { return c.str(&k.RunID) }},
	{"step_id", optional, func(c *cursor, k *RunSealed) error { return c.optStr(&k.StepID) }},
	{"resource_index", optional, func(c *cursor, k *RunSealed) error { return c.optU64(&k.ResourceIndex) }},
	{"run_bundle_digest", required, func(c *cursor, k *RunSealed) error { return c.digest(&k.RunBundleDigest) }},
}

// decodeKind looks for the tag, which may stand anywhere, and reads the rest
// by it. The text is in memory, so looking ahead needs none of its own.
func decodeKind(c *cursor) (Kind, error) {
	tag, err := c.tag()
	if err != nil {
		return nil, err
	}
	switch string(tag) {
	case TagIntentBound:
		return decodeAs(c, new(IntentBound), intentFields)
	case TagCompCommitted:
		return decodeAs(c, new(CompCommitted), compFields)
	case TagStepExecuted:
		return decodeAs(c, c.newStep(), stepFields)
	case TagRunSealed:
		return decodeAs(c, new(RunSealed), sealFields)
	}
	return nil, c.fail(c.pos, "unknown kind %.40q", tag)
}

func decodeAs[T any, K interface {
	*T
	Kind
}](c *cursor, k K, fields []field[T]) (Kind, error) {
	if err := decodeRecord(c, (*T)(k), fields); err != nil {
		return nil, err
	}
	return k, nil
}

// tag finds the tag of the kind at pos without moving: the member "kind" of
// an object, the first value of an array.
func (c *cursor) tag() ([]byte, error) {
	open := c.peek()
	look := *c
	look.pos++
	look.depth++
	for open == '{' && look.next() {
		if string(look.name()) == "kind" {
			look.space()
			return look.stringBytes()
		}
		look.peek()
		look.pass()
	}
	if open == '[' && look.next() {
		return look.stringBytes()
	}
	return nil, c.fail(c.pos, "want a kind with its tag")
}
