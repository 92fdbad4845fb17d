//! Somebody types what docs/up.md says.

use std::process::Command;

use kubewake_e2e::{
    documented_output, free_address,
    kubectl::on_path,
    process::ChildProcess,
    up_process::{HomeDir, UpProcess},
    wait_for_ok, wait_until,
};

use super::super::readme::{blocks, commands, shell};

/// A command that is typed beside a running `up`, with the ports that are free here.
fn typed(home: &HomeDir, up: &UpProcess, webhook: &str, command: &str) -> Command {
    let otlp = up.line("OTLP gRPC").rsplit_once("=http").unwrap().1.trim_start_matches("://");
    let command = command.replace("127.0.0.1:9444", webhook).replace("127.0.0.1:4317", otlp);
    let mut shell = shell(&command, home.path());
    shell.env("KUBECONFIG", up.kubeconfig()).env("HOME", home.path()).env("NO_PROXY", "*");
    shell
}

#[test]
fn every_command_of_the_document_works() {
    let home = HomeDir::default();
    if on_path(home.path()).is_none() {
        return;
    }
    let all = commands("docs/up.md");
    let (start, others) = all.split_first().unwrap();
    assert_eq!(start, "kubewake up");
    let up = home.start(&[]);
    let place = free_address().to_string();
    let typed = |command: &str| typed(&home, &up, &place, command);
    let mut webhook = None;
    let run = |command: &str| {
        let output = typed(command).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() { Ok(said) } else { Err(format!("{command}: {said}")) }
    };
    for command in others {
        match command.split_whitespace().take(2).collect::<Vec<_>>().as_slice() {
            ["export", named] => {
                let named = named.strip_prefix("KUBECONFIG=~").expect("the only variable");
                assert_eq!(format!("{}{named}", home.path().display()), up.kubeconfig());
            }
            _ if command.contains("kubewake webhook") => {
                // In a terminal of its own: what is exported in this one is not known there.
                let mut process = ChildProcess::start(typed(command).env_remove("KUBECONFIG"));
                process.wait_until_ready();
                webhook = Some(process);
            }
            // Its spans take a moment to the viewer.
            ["kubewake", "trace"] => drop(wait_for_ok(|| run(command))),
            ["kubectl", "create"] => {
                // A registration is in force a moment after it was made, which is over before a person has typed this.
                let probe = format!("{command} --dry-run=server -o yaml");
                wait_until("the API server calls", || run(&probe).unwrap().contains("traceparent"));
                run(command).unwrap();
            }
            _ => drop(run(command).unwrap()),
        }
    }
    let shown = blocks("docs/up.md", "text").remove(0);
    wait_for_ok(|| {
        let said = run("kubewake trace configmap/shop")?;
        if documented_output::missing_lines(&shown, &said).is_empty() { Ok(()) } else { Err(said) }
    });
    assert!(webhook.is_some(), "the document shows how to stamp kinds of one's own");
    drop(webhook);
    up.stop_with("TERM");
}
