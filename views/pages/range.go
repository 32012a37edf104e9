package pages

// RangeView is the stretch of time that a page's charts show, and the others to choose from.
type RangeView struct {
	Title   string // Last 24 hours
	Each    string // what a bar is: Attempts by the hour
	Days    bool   // the bars are days, which are those of UTC
	Choices []RangeChoice
}

// RangeChoice is one of them.
type RangeChoice struct {
	Label, Long, Href string
	Active            bool
}
