use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::*;

/// A process that ignores signals, with a child that shares nothing with it but the output.
fn stubborn(mark: &ClusterTag) -> Child {
    let script = "trap '' TERM HUP INT; (cd /; setsid env -i sleep 1000 </dev/null 2>/dev/null &) ; sleep 1000 & wait";
    mark.new_container_tag()
        .tagged_command(Path::new("/bin/sh"))
        .args(["-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn bystander() -> Child {
    Command::new("sleep").arg("1000").spawn().unwrap()
}

#[test]
fn when_the_pipe_ends_the_marked_die_and_the_directory_goes() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("pods/a")).unwrap();
    std::fs::write(directory.path().join("pods/a/file"), "x").unwrap();
    let guard = CleanupGuard::start(directory.path()).unwrap();
    let mut marked = stubborn(guard.cluster_tag());
    let mut other = bystander();
    guard.stop().unwrap();
    marked.wait().unwrap();
    // Returns only when all holders of the pipe have ended.
    std::io::read_to_string(marked.stdout.take().unwrap()).unwrap();
    assert!(!directory.path().exists());
    assert!(other.try_wait().unwrap().is_none(), "somebody else was hit");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn who_is_about_to_carry_the_mark_dies_too() {
    let directory = tempfile::tempdir().unwrap();
    let guard = CleanupGuard::start(directory.path()).unwrap();
    let command = guard.cluster_tag().new_container_tag().tagged_command(Path::new("/bin/sh"));
    // A process that is killed before it applies its tag.
    let arguments = command.get_args().map(|argument| argument.to_str().unwrap()).collect::<Vec<_>>();
    let mut late = Command::new("sh");
    late.args(["-c", "read -r _", "prlimit"]).args(arguments).stdin(Stdio::piped());
    let mut late = late.spawn().unwrap();
    // It waits for input that never comes.
    let _held = late.stdin.take();
    guard.stop().unwrap();
    assert!(!late.wait().unwrap().success());
}

#[test]
fn a_guard_that_nobody_stopped_cleans_up_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    drop(CleanupGuard::start(&path).unwrap());
    let end = Instant::now() + Duration::from_secs(60);
    while path.exists() {
        assert!(Instant::now() < end, "the directory is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_guard_is_not_part_of_a_cluster_that_its_own_is_within() {
    // The guard of an inner cluster, with the tags of the outer one.
    let outer = ClusterTag::new().unwrap().new_container_tag();
    let mut guard = outer.tagged_command(Path::new("/usr/bin/env"));
    let inner = ClusterTag::new().unwrap().untagged_command(Path::new("/bin/sleep"));
    let mut child = guard.arg(inner.get_program()).args(inner.get_args()).arg("1000").spawn().unwrap();
    let line = format!("/proc/{}/cmdline", child.id());
    let end = Instant::now() + Duration::from_secs(60);
    while std::fs::read_to_string(&line).unwrap() != "/bin/sleep\x001000\0" {
        assert!(Instant::now() < end, "it does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    crate::process_tags::kill_tagged(&[outer]);
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}
