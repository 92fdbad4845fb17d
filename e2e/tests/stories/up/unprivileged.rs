//! Somebody who is not root, on a machine without a network.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
    process::Command,
};

use kubewake_e2e::process::{ChildProcess, kubewake};

/// Whom every system calls `nobody`.
const NOBODY: u32 = 65534;

/// A program that `nobody` runs, and that sees no network but its own machine, where that can be had.
fn alone(program: &Path) -> Command {
    let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
    let rest = "ip link set lo up && exec \"$@\"";
    let without_network = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", rest, "sh", "setpriv", &ids[0], &ids[1], "--clear-groups"]).arg(program);
        command
    };
    if without_network(Path::new("true")).output().is_ok_and(|output| output.status.success()) {
        return without_network(program);
    }
    eprintln!("no network of its own can be made here: that it needs none is not seen");
    let mut command = Command::new(program);
    command.uid(NOBODY).gid(NOBODY);
    command
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
    let mut command = alone(&program);
    command.args(["up", "--listen", any, "--otlp", any, "--otlp-http", any, "--api", any]);
    command.current_dir(home.path()).env("HOME", home.path()).env("TMPDIR", home.path()).env("NO_PROXY", "*");
    for name in ["KUBECONFIG", "XDG_STATE_HOME", "RUST_LOG"] {
        command.env_remove(name);
    }
    let mut up = ChildProcess::start(&mut command);
    up.wait_until_ready();
    assert!(up.stdout().contains("Head sample is ready after"), "{}", up.stdout());
    up.signal("TERM");
    assert!(up.wait_for_exit().success());
}
