//! `kubewake completions`: what a shell needs to know.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{KubewakeCli, output};

/// Arguments of `kubewake completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  source <(kubewake completions bash)                                        this shell
  kubewake completions bash > ~/.local/share/bash-completion/completions/kubewake
  kubewake completions zsh > \"${fpath[1]}/_kubewake\"
  kubewake completions fish > ~/.config/fish/completions/kubewake.fish")]
pub(crate) struct CompletionsArgs {
    /// Name of the shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut KubewakeCli::command(), "kubewake", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
