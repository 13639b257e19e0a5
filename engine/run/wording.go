package run

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/chaind/chaind/bundle"
)

// quote makes a text of somebody else's safe to stand in a sentence: at most
// maxQuoted code points, then "…", as a JSON string in canonical form.
func quote(s string) string {
	n := 0
	for i := range s {
		if n == maxQuoted {
			s = s[:i] + "…"
			break
		}
		n++
	}
	return string(bundle.AppendString(nil, s))
}

// plural gives a number and its noun.
func plural[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatUint(uint64(n), 10) + " " + noun + "s"
}

// list collects entries of which the first maxListed are told.
type list struct {
	told  []string
	total int
}

func (l *list) add(entry func() string) {
	if l.total < maxListed {
		l.told = append(l.told, entry())
	}
	l.total++
}

func (l *list) String() string {
	text := strings.Join(l.told, ", ")
	if more := l.total - len(l.told); more > 0 {
		return text + fmt.Sprintf(" and %d more", more)
	}
	return text
}

func quoted(names []string) string {
	var l list
	for _, name := range names {
		l.add(func() string { return quote(name) })
	}
	return l.String()
}
