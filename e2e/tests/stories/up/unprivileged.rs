//! Somebody who is not root.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    process::Command,
};

use kubewake_e2e::process::{Process, kubewake};

/// Whom every system calls `nobody`.
const NOBODY: u32 = 65534;

#[test]
fn it_needs_no_root() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return eprintln!("all stories of `up` are told by somebody who is not root");
    }
    let home = tempfile::tempdir().unwrap();
    // What tests build may be where only root looks.
    let program = home.path().join("kubewake");
    fs::copy(kubewake().get_program(), &program).unwrap();
    chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let any = "127.0.0.1:0";
    let mut command = Command::new(program);
    command.args(["up", "--listen", any, "--otlp", any, "--otlp-http", any, "--api", any]).uid(NOBODY).gid(NOBODY);
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
