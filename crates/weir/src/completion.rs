//! `weir completion`: the completion script of a shell.

use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};
use clap_complete::generate;
use weir_cli::output;

/// Print the completion script of a shell
///
/// The script completes subcommands, options and their values. The Debian package installs the scripts of bash, zsh and
/// fish.
///
/// Exit status: 0 printed; 1 standard output is gone; 2 wrong usage.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir completion bash >/etc/bash_completion.d/weir\n  \
                        weir completion zsh >~/.zfunc/_weir\n  \
                        source <(weir completion bash)         # this shell only")]
pub struct Arguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// The shells.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Fish,
    Zsh,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments, command: Command) -> ExitCode {
    match output::print(script(arguments.shell, command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn script(shell: Shell, mut command: Command) -> String {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    match shell {
        Shell::Bash => generate(clap_complete::Shell::Bash, &mut command, name, &mut script),
        Shell::Fish => generate(clap_complete::Shell::Fish, &mut command, name, &mut script),
        Shell::Zsh => generate(clap_complete::Shell::Zsh, &mut command, name, &mut script),
    }
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::CommandLine;

    #[test]
    fn each_script_knows_the_subcommands() {
        for shell in Shell::value_variants() {
            let script = script(*shell, CommandLine::command());
            for word in ["check", "reload", "--json", "completion"] {
                let word = if *shell as u8 == Shell::Fish as u8 {
                    word.trim_start_matches('-')
                } else {
                    word
                };
                assert!(script.contains(word), "{shell:?}: {word}");
            }
        }
    }
}
