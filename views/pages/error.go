package pages

// ErrorView is a refusal, or a fault of ours, as a person sees it.
type ErrorView struct {
	Frame     Frame
	Status    int
	Code      string
	Detail    string
	RequestID string
}
