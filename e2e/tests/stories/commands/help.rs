//! Every command says how it is used, and shells know them all.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use kubewake_e2e::{
    process::{kubewake, workspace},
    python::python,
};

use super::run;

/// The commands below one, and so on: `collector`, `collector validate`.
fn commands(home: &Path, above: &str) -> Vec<String> {
    let help = run(home, &format!("{above} --help")).stdout;
    let listed = help.split("Commands:\n").nth(1).unwrap_or_default().split("\n\n").next().unwrap_or_default();
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names =
        names.filter(|name| !["", "help"].contains(name)).map(|name| format!("{above} {name}").trim().to_owned());
    names.flat_map(|name| [vec![name.clone()], commands(home, &name)].concat()).collect()
}

#[test]
fn every_command_has_help_with_examples() {
    let home = tempfile::tempdir().unwrap();
    let all = commands(home.path(), "");
    assert!(["up", "check", "operator manifests"].iter().all(|name| all.iter().any(|it| it == name)), "{all:?}");
    for command in std::iter::once("").chain(all.iter().map(String::as_str)) {
        let help = run(home.path(), &format!("{command} --help"));
        assert_eq!(help.code, 0, "{command}: {}", help.stderr);
        assert!(help.stdout.contains("Examples:"), "{command} has no examples:\n{}", help.stdout);
        assert!(!help.stdout.contains('\u{1b}'), "colours are for terminals");
    }
}

#[test]
fn shells_complete_every_command() {
    let home = tempfile::tempdir().unwrap();
    let all = commands(home.path(), "");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(home.path(), &format!("completions {shell}"));
        assert_eq!(script.code, 0, "{}", script.stderr);
        let unknown: Vec<&String> =
            all.iter().filter(|it| !script.stdout.contains(it.rsplit(' ').next().unwrap())).collect();
        assert!(unknown.is_empty(), "{shell} does not know {unknown:?}");
    }
    let wrong = run(home.path(), "completions tcsh");
    assert!(wrong.code == 2 && wrong.stderr.contains("bash"), "{wrong:?}");
    // What bash makes of it.
    let script = home.path().join("kubewake.bash");
    fs::write(&script, run(home.path(), "completions bash").stdout).unwrap();
    let typed = format!(
        "source {}; COMP_WORDS=(kubewake che); COMP_CWORD=1; _kubewake kubewake che kubewake; echo ${{COMPREPLY[@]}}",
        script.display()
    );
    let completed = Command::new("bash").args(["-c", &typed]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&completed.stdout).trim(), "check", "{completed:?}");
}

/// The documents that people read.
fn documents() -> Vec<PathBuf> {
    let list = |folder: &str| fs::read_dir(workspace().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let examples = list("examples").map(|example| example.join("README.md"));
    let all = list("").chain(list("docs")).chain(examples);
    all.filter(|path| path.extension().is_some_and(|it| it == "md")).collect()
}

/// What of a text is a command of ours, in a block or in a sentence: the words up to where another program begins.
fn ours(text: &str) -> Vec<Vec<&str>> {
    let typed = text.lines().filter(|line| line.starts_with("kubewake "));
    let named = text.split('`').skip(1).step_by(2).filter(|code| code.starts_with("kubewake "));
    let goes_on = |word: &&str| !["|", "\\|", ">", "#"].contains(word) && !word.contains("$(");
    typed.chain(named).map(|it| it.split_whitespace().skip(1).take_while(goes_on).collect()).collect()
}

#[test]
fn documents_name_only_commands_and_options_that_exist() {
    let home = tempfile::tempdir().unwrap();
    let all = commands(home.path(), "");
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for words in ours(&text) {
            let line = format!("{}: kubewake {}", path.display(), words.join(" "));
            let longest = (1..=words.len()).rev().map(|count| words[..count].join(" "));
            let command = longest.into_iter().find(|name| all.contains(name)).unwrap_or_else(|| panic!("{line}"));
            let help = helps.entry(command).or_insert_with_key(|it| run(home.path(), &format!("{it} --help")).stdout);
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let option = option.split('=').next().unwrap();
                let knows = help.split_whitespace().any(|word| word.trim_end_matches(',') == option);
                assert!(knows, "{line}: there is no {option}");
            }
        }
    }
    assert!(helps.len() > 10, "{:?}", helps.keys());
}

/// Runs a command at a terminal, and gives what it shows there.
fn at_terminal(home: &Path, command: &str, variables: &[(&str, &str)]) -> String {
    let program = kubewake();
    let mut words = vec![program.get_program().to_str().unwrap().to_owned()];
    words.extend(command.split_whitespace().map(str::to_owned));
    let script = "import pty, sys; pty.spawn(sys.argv[1:])";
    let mut terminal = Command::new(python());
    terminal.env_clear().env("HOME", home).env("TERM", "xterm").envs(variables.iter().copied());
    let output = terminal.args(["-c", script]).args(&words).stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn colours_are_for_terminals_whose_owners_want_them() {
    let home = tempfile::tempdir().unwrap();
    let red = "\u{1b}[31m\u{1b}[1m✗";
    assert!(!run(home.path(), "check").stdout.contains('\u{1b}'));
    let shown = at_terminal(home.path(), "check", &[]);
    assert!(shown.contains(red), "{shown:?}");
    let shown = at_terminal(home.path(), "check", &[("NO_COLOR", "1")]);
    assert!(shown.contains("✗") && !shown.contains("\u{1b}[31m"), "{shown:?}");
}

#[test]
fn progress_is_shown_at_a_terminal() {
    let home = tempfile::tempdir().unwrap();
    let program = kubewake();
    // Interrupted as soon as something turns.
    let script = "
import os, pty, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen, told = b'', False
while True:
    try:
        more = os.read(terminal, 1 << 16)
    except OSError:
        break
    if not more:
        break
    seen += more
    if '⠙'.encode() in seen and not told:
        told = True
        os.kill(pid, signal.SIGINT)
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";
    let mut terminal = Command::new(python());
    terminal.env_clear().env("HOME", home.path()).env("TMPDIR", home.path()).env("TERM", "xterm").env("NO_PROXY", "*");
    let any = "127.0.0.1:0";
    terminal.args(["-c", script]).arg(program.get_program());
    terminal.args(["up", "--no-demo", "--listen", any, "--otlp", any, "--otlp-http", any, "--api", any]);
    let output = terminal.stdin(Stdio::null()).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown:?}");
    assert!(shown.contains("⠙ "), "{shown:?}");
}
