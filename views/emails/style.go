package emails

// font starts the style of every text: mail programs do not inherit it into tables. It has no quotes, since they would
// be escaped twice.
const font = "font-family:-apple-system,BlinkMacSystemFont,Segoe UI,Roboto,Helvetica,Arial,sans-serif;"

// buttonStyle is the style of the text of a button.
const buttonStyle = "display:inline-block;padding:10px 18px;font-size:15px;line-height:22px;font-weight:600;text-decoration:none;"

// color is the color of the line above the letter.
func (t Tone) color() string {
	switch t {
	case Good:
		return "#2e7d4f"
	case Careful:
		return "#b7791f"
	case Bad:
		return "#c43d3d"
	}
	return "#2f4fe0"
}
