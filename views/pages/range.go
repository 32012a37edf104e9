package pages

// RangeView is the time range of a page's charts, and the other choices.
type RangeView struct {
	Title   string // Last 24 hours
	Each    string // the bars: "Attempts by the hour"
	Days    bool   // the bars are UTC days
	Choices []RangeChoice
}

// RangeChoice is one of them.
type RangeChoice struct {
	Label, Long, Href string
	Active            bool
}
