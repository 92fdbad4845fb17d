//! Somebody types what docs/up.md says.

use kubewake_e2e::{kubectl::on_path, up::Home};

use super::super::readme::{commands, shell};

#[test]
fn every_command_of_the_document_works() {
    let home = Home::default();
    if on_path(home.path()).is_none() {
        return;
    }
    let all = commands("docs/up.md");
    let (start, others) = all.split_first().unwrap();
    assert_eq!(start, "kubewake up");
    let up = home.up(&[]);
    let ours = up.kubeconfig().to_owned();
    for command in others {
        if let Some(named) = command.strip_prefix("export KUBECONFIG=~") {
            assert_eq!(format!("{}{named}", home.path().display()), ours);
            continue;
        }
        let mut typed = shell(command, home.path());
        let output = typed.env("KUBECONFIG", &ours).env("HOME", home.path()).env("NO_PROXY", "*").output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    up.end("TERM");
}
