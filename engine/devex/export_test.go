package devex

// The scanners of expressions.
var (
	FindRun       = findRun
	FindPR        = findPR
	NamedErrors   = namedErrors
	ActionsErrors = actionsErrors
	IsTrailer     = isTrailer
	FirstQuoted   = firstQuoted
)
