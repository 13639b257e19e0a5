package segments

// Scope names the session that a chain belongs to (section 2.2). It is
// not part of any segment digest; the head signature covers it.
type Scope struct {
	SchemaVersion    uint32  // ScopeSchemaVersion in everything we write
	TenantID         string  // "" is the empty tenant; omitted when written
	LogicalSessionID *string // nil: absent
	PromptHash       string  // 64 lower-case hex digits in practice
	ExecuteSessionID string  // 32 lower-case hex digits in practice
	CatalogCGSHash   string  // hex hash of the loaded catalog
	DomainRevision   uint32
	EntryID          string // primary catalog entry
}

// Tags of the four kinds (section 2.5).
const (
	TagIntentBound   = "intent_bound"
	TagCompCommitted = "comp_committed"
	TagStepExecuted  = "step_executed"
	TagRunSealed     = "run_sealed"
)

// Kind is the payload of a segment: *IntentBound, *CompCommitted,
// *StepExecuted or *RunSealed, and nothing else.
type Kind interface {
	Tag() string
	isKind()
}

// IntentBound binds what the agent was asked to do.
type IntentBound struct {
	IntentDigest Digest
	IntentLen    uint32 // UTF-8 bytes of the trimmed intent
}

// CompCommitted commits to a compiled plan.
type CompCommitted struct {
	PlanCommitIDHex    string // the hex of CompSemanticSHA256 in honest chains
	CompSemanticSHA256 Digest
	StepTopo           []string // step ids in topological order
}

// StepExecuted records one executed plan step.
type StepExecuted struct {
	StepID              string
	StepIndex           uint32
	EntryID             *string // nil: absent
	RequestFingerprints []string
	SourceLine          string
	ParsedExprDigest    Digest
}

// RunSealed seals the run snapshot of one return root.
type RunSealed struct {
	RunID           string // "pr" + hex of RunBundleDigest in honest chains
	StepID          *string
	ResourceIndex   *uint64 // counts runs within the session
	RunBundleDigest Digest
}

func (*IntentBound) Tag() string   { return TagIntentBound }
func (*CompCommitted) Tag() string { return TagCompCommitted }
func (*StepExecuted) Tag() string  { return TagStepExecuted }
func (*RunSealed) Tag() string     { return TagRunSealed }

func (*IntentBound) isKind()   {}
func (*CompCommitted) isKind() {}
func (*StepExecuted) isKind()  {}
func (*RunSealed) isKind()     {}

// Segment is one link of a chain (section 2.4).
type Segment struct {
	Seq         uint64
	Prev        *Digest // nil: absent, as in the first segment
	Kind        Kind
	EmittedAtMS *uint64 // Unix milliseconds, not hashed; nil: absent
}

// Anchors are hints that are neither hashed nor signed (section 2.6).
// The zero value means that the member is absent.
type Anchors struct {
	PlanCommitRef *string
	TraceID       *string // hyphenated lower-case UUID
	PlanCallIndex *uint64
}

// Signature is an Ed25519 signature over the head message (section 2.7).
// The strings are kept as read; nothing is checked while decoding.
type Signature struct {
	PublicKeyHex string // 64 lower-case hex digits when written by us
	SignatureHex string // 128 lower-case hex digits when written by us
}

// Bundle is a whole evidence bundle held in memory (section 2.1).
// Envelope is the part beside the segments.
type Bundle struct {
	Envelope
	Segments []Segment
}

// Envelope is an evidence bundle without its segments.
type Envelope struct {
	Scope     Scope
	Head      *Digest // declared head; nil: absent
	Anchors   Anchors
	Signature *Signature // nil: unsigned
}
