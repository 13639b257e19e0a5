package devex

import (
	"strings"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/action"
	"github.com/chaind/chaind/engine/text"
)

// Actions returns the actions of a domain: an incident about a failed run in
// both, and a summary of a pull request in devex.
func Actions(domain string) action.Set {
	all := action.Set{incident(), prSummary()}
	if domain != Name {
		return all[:1]
	}
	return all
}

func incident() *action.Kind {
	return &action.Kind{
		Name: "incident", Domains: []string{Name, GitHubActions},
		Route: "rca", Hint: "a pipeline run (e.g. 'Why did run R-1042 fail?')",
		Subject: "failing_run", Roles: roles(), Title: firstError,
		Method: "POST", Path: "/repos/{owner}/{repo}/issues", Labels: []string{"incident"}, Titled: true,
	}
}

func prSummary() *action.Kind {
	return &action.Kind{
		Name: "pr_summary", Domains: []string{Name},
		Route: "summary", Hint: "a pull request (e.g. 'What does PR-201 change?')",
		Subject: "pull_request", Roles: roles(), Title: firstQuoted,
		Method: "POST", Path: "/repos/{owner}/{repo}/issues/{pr}/comments",
		Resource: &action.Resource{Placeholder: "{pr}", Prefix: prPrefix},
	}
}

// roles are those of the claims that this domain makes; the last fits any.
func roles() []action.Role {
	return []action.Role{
		{Name: "title", Label: "Summary"},
		{Name: "failing_run", Label: "Failing run"},
		{Name: "pull_request", Label: "Pull request"},
		{Name: "prior_occurrence", Label: "Prior occurrence", Prefixes: []string{"Recurring failure:"}},
		{Name: "documented_incident", Label: "Documented incident", Prefixes: []string{"Documented incident:"}},
		{Name: "resolving_change", Label: "Resolved by", Prefixes: []string{"Resolved by:"}},
		{Name: "motivating_ticket", Label: "Motivating ticket", Prefixes: []string{"Motivating ticket:"}},
		{Name: "referenced_ticket", Label: "Referenced ticket", Prefixes: []string{"Ticket "}},
		{Name: "referenced_pull_request", Label: "Pull request", Prefixes: []string{"PR "}},
		{Name: "code_change", Label: "Code change", Prefixes: []string{"diff --git", "@@ "}, Fenced: true},
		{Name: "log", Label: "Error log", Prefixes: []string{""}, Fenced: true},
	}
}

// firstError is the first error line in the claims, be it only an exit code.
func firstError(claims []engine.RecordedClaim) (title string, claim int, ok bool) {
	for i := range claims {
		if lines := namedErrors(claims[i].Text); len(lines) > 0 {
			return text.Trim(lines[0]), i, true
		}
		if lines := actionsErrors(claims[i].Text); len(lines) > 0 {
			return lines[0], i, true
		}
	}
	return "", 0, false
}

// firstQuoted is the first text in double quotes of the first claim.
func firstQuoted(claims []engine.RecordedClaim) (title string, claim int, ok bool) {
	if len(claims) == 0 {
		return "", 0, false
	}
	rest := claims[0].Text
	for {
		_, after, found := strings.Cut(rest, `"`)
		if !found {
			return "", 0, false
		}
		if quoted, _, closed := strings.Cut(after, `"`); closed && quoted != "" {
			return quoted, 0, true
		}
		rest = after
	}
}
