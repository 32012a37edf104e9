package transform

// Preset is a transformation for a well-known receiver.
type Preset struct {
	Name        string
	Label       string
	Hint        string
	Expression  string
	ContentType string
	Method      string
	Headers     map[string]string
	Variables   []PresetVariable
}

// PresetVariable is a value that a preset asks for.
type PresetVariable struct{ Name, Label string }

// PresetNamed finds a preset.
func PresetNamed(name string) (Preset, bool) {
	for _, p := range presets {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

// Presets lists the presets.
func Presets() []Preset { return presets }

// PresetNames lists their names.
func PresetNames() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.Name
	}
	return names
}
