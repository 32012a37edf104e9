// Package compare finds what differs between two texts, line by line.
package compare

// maxLines bounds the lines of each text that are compared one by one, beyond what both have in common at the beginning
// and the end.
const maxLines = 400

// Kind is what a line is to the two texts.
type Kind byte

// The kinds: in both texts, in the old one alone, in the new one alone.
const (
	Same    Kind = ' '
	Removed Kind = '-'
	Added   Kind = '+'
)

// Line is one line of a comparison.
type Line struct {
	Kind Kind
	Text string
}

// Lines gives the shortest way from one text to another, as lines. Texts that differ in more than maxLines lines are
// replaced as a whole where they differ.
func Lines(old, changed []string) []Line {
	var out []Line
	begin := 0
	for begin < len(old) && begin < len(changed) && old[begin] == changed[begin] {
		out = append(out, Line{Same, old[begin]})
		begin++
	}
	end := 0
	for end < len(old)-begin && end < len(changed)-begin && old[len(old)-1-end] == changed[len(changed)-1-end] {
		end++
	}
	out = append(out, between(old[begin:len(old)-end], changed[begin:len(changed)-end])...)
	for _, text := range old[len(old)-end:] {
		out = append(out, Line{Same, text})
	}
	return out
}

// between compares what neither begins nor ends alike, by the longest common subsequence.
func between(old, changed []string) (out []Line) {
	i, j := 0, 0
	if len(old) <= maxLines && len(changed) <= maxLines {
		common := longest(old, changed)
		for i < len(old) && j < len(changed) {
			switch {
			case old[i] == changed[j]:
				out = append(out, Line{Same, old[i]})
				i, j = i+1, j+1
			case common[i+1][j] >= common[i][j+1]:
				out = append(out, Line{Removed, old[i]})
				i++
			default:
				out = append(out, Line{Added, changed[j]})
				j++
			}
		}
	}
	for _, text := range old[i:] {
		out = append(out, Line{Removed, text})
	}
	for _, text := range changed[j:] {
		out = append(out, Line{Added, text})
	}
	return out
}

// longest is how many lines the rests from i and from j have in common, in order.
func longest(a, b []string) [][]int {
	n := make([][]int, len(a)+1)
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if n[i][j] = max(n[i+1][j], n[i][j+1]); a[i] == b[j] {
				n[i][j] = n[i+1][j+1] + 1
			}
		}
	}
	return n
}
