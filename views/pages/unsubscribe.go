package pages

// UnsubscribeView is where whoever has a mail stops mails like it, and chooses others.
type UnsubscribeView struct {
	Shell   Frame
	Path    string // of this page, with its token
	Tenant  string
	Kind    string
	Label   string // of the kind
	Wanted  bool   // mails of the kind are sent now
	Done    string // what was just done; empty before
	Choices []NoticeChoice
}

// NoticeChoice is one kind of notice, and whether it is mailed.
type NoticeChoice struct {
	Kind, Label string
	Wanted      bool
}
