package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"${enum}."`
}

// The scripts call the program itself, so they work for every version of it.
var scripts = map[string]string{
	"bash": `# In ~/.bashrc: source <(posthorn completion bash)
_posthorn() {
  local IFS=$'\n'
  COMPREPLY=($(posthorn __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ ${#COMPREPLY[@]} -eq 0 ]] && compopt -o default 2>/dev/null
}
complete -F _posthorn posthorn
`,
	"zsh": `#compdef posthorn
# In ~/.zshrc, after compinit: source <(posthorn completion zsh)
_posthorn() {
  local -a found
  found=("${(@f)$(posthorn __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then compadd -a found; else _files; fi
}
compdef _posthorn posthorn
`,
	"fish": `# In ~/.config/fish/completions/posthorn.fish: posthorn completion fish | source
complete -c posthorn -f -a '(set -l words (commandline -opc) (commandline -ct); posthorn __complete -- $words[2..-1] 2>/dev/null)'
`,
}

// Run prints a script.
func (c completionCommand) Run(e *Env) error {
	e.printf("%s", scripts[c.Shell])
	return nil
}

type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints the completions of the last word, one per line.
func (c completeCommand) Run(e *Env, app *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, candidate := range candidates(app.Model.Node, words) {
		e.printf("%s\n", candidate)
	}
	return nil
}

// candidates are the completions of the last word after the others.
func candidates(node *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last, before := words[len(words)-1], words[:len(words)-1]
	flags := slices.Clone(node.Flags)
	for _, w := range before {
		if child := childOf(node, w); child != nil {
			node = child
			flags = append(flags, node.Flags...)
		}
	}
	var all []string
	if len(before) > 0 {
		if f := flagOf(flags, before[len(before)-1]); f != nil && !f.IsBool() {
			return starting(f.EnumSlice(), last)
		}
	}
	if strings.HasPrefix(last, "-") {
		for _, f := range flags {
			if !f.Hidden {
				all = append(all, "--"+f.Name)
			}
		}
		return starting(all, last)
	}
	for _, child := range node.Children {
		if !child.Hidden {
			all = append(all, child.Name)
		}
	}
	for _, p := range node.Positional {
		all = append(all, p.EnumSlice()...)
	}
	return starting(all, last)
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name || slices.Contains(child.Aliases, name) {
			return child
		}
	}
	return nil
}

func flagOf(flags []*kong.Flag, word string) *kong.Flag {
	for _, f := range flags {
		if "--"+f.Name == word || f.Short != 0 && "-"+string(f.Short) == word {
			return f
		}
	}
	return nil
}

func starting(all []string, with string) []string {
	var some []string
	for _, one := range all {
		if one != "" && strings.HasPrefix(one, with) {
			some = append(some, one)
		}
	}
	slices.Sort(some)
	return slices.Compact(some)
}
