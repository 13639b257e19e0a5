package text

import "errors"

// maxSteps bounds the work of one LongestRun.
const maxSteps = 1 << 28

// ErrTooLong says that two texts are too long to be compared.
var ErrTooLong = errors.New("the texts are too long to be compared")

// manyRunes is the length of the second text from which on its frequent
// characters do not start a run.
const manyRunes = 200

// LongestRun is the size of the longest block that Python's difflib finds in
// two ASCII texts: SequenceMatcher(None, a, b).find_longest_match() with its
// heuristic for frequent characters. Below 200 characters in b it is the length
// of the longest common substring. It takes len(a)·len(b) steps, and fails with
// ErrTooLong when that is more than 2^28.
func LongestRun(a, b string) (int, error) {
	if a == "" || b == "" {
		return 0, nil
	}
	if len(a) > maxSteps/len(b) {
		return 0, ErrTooLong
	}
	endA, endB, size := longestBlock(a, b, indexed(b))
	return extend(a, b, endA-size, endB-size, size), nil
}

// indexed says which bytes may stand in a block before it is extended: all, or
// in a long b those that do not occur too often.
func indexed(b string) *[256]bool {
	var counts [256]int
	for i := range len(b) {
		counts[b[i]]++
	}
	limit := len(b)
	if len(b) >= manyRunes {
		limit = len(b)/100 + 1
	}
	var out [256]bool
	for c := range out {
		out[c] = counts[c] > 0 && counts[c] <= limit
	}
	return &out
}

// longestBlock finds the first longest common substring of indexed bytes, first
// in a, then in b, and returns where it ends in both. Nothing found: all zero.
func longestBlock(a, b string, indexed *[256]bool) (endA, endB, size int) {
	row := make([]int32, len(b)+1) // length of the common run that ends before a[i], b[j]
	for i := range len(a) {
		if !indexed[a[i]] {
			clear(row)
			continue
		}
		diagonal := int32(0)
		for j := range len(b) {
			above := row[j+1]
			row[j+1] = 0
			if a[i] == b[j] {
				row[j+1] = diagonal + 1
				if int(row[j+1]) > size {
					endA, endB, size = i+1, j+1, int(row[j+1])
				}
			}
			diagonal = above
		}
	}
	return endA, endB, size
}

// extend grows a block at both ends by equal bytes, frequent ones included.
func extend(a, b string, i, j, size int) int {
	for i > 0 && j > 0 && a[i-1] == b[j-1] {
		i, j, size = i-1, j-1, size+1
	}
	for i+size < len(a) && j+size < len(b) && a[i+size] == b[j+size] {
		size++
	}
	return size
}
