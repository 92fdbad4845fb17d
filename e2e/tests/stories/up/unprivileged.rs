//! Somebody who is not root, on a machine without a network.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, chown},
    process::Command,
};

use kubewake_e2e::process::{Process, kubewake};

/// Whom every system calls `nobody`.
const NOBODY: u32 = 65534;

/// Makes what follows it a command of `nobody` that sees no network but its own machine, where that can be had.
fn alone() -> Vec<String> {
    let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
    let rest = "ip link set lo up && exec \"$@\"";
    let words = ["unshare", "--net", "sh", "-c", rest, "sh", "setpriv", &ids[0], &ids[1], "--clear-groups"];
    let words: Vec<String> = words.map(str::to_owned).into();
    let tried = Command::new(&words[0]).args(&words[1..]).arg("true").output();
    if tried.is_ok_and(|output| output.status.success()) {
        return words;
    }
    eprintln!("no network of its own can be made here: that it needs none is not seen");
    ["setpriv", &ids[0], &ids[1], "--clear-groups"].map(str::to_owned).into()
}

#[test]
fn it_needs_neither_root_nor_a_network() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return eprintln!("all stories of `up` are told by somebody who is not root");
    }
    let home = tempfile::tempdir().unwrap();
    // What tests build may be where only root looks.
    let program = home.path().join("kubewake");
    fs::copy(kubewake().get_program(), &program).unwrap();
    chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let any = "127.0.0.1:0";
    let words = alone();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(program);
    command.args(["up", "--listen", any, "--otlp", any, "--otlp-http", any, "--api", any]);
    command.current_dir(home.path()).env("HOME", home.path()).env("TMPDIR", home.path()).env("NO_PROXY", "*");
    for name in ["KUBECONFIG", "XDG_STATE_HOME", "RUST_LOG"] {
        command.env_remove(name);
    }
    let mut up = Process::start(&mut command);
    up.ready();
    assert!(up.stdout().contains("Head sample is ready after"), "{}", up.stdout());
    up.signal("TERM");
    assert!(up.wait().success());
}
