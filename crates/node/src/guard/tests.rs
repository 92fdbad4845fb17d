use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::*;

/// A process that starts another in a session of its own and ignores whatever it can.
fn stubborn(mark: &Mark) -> Child {
    let (name, value) = mark.variable();
    let script = "trap '' TERM HUP INT; setsid sleep 1000 & sleep 1000 & wait";
    Command::new("sh").args(["-c", script]).env(name, value).stdout(Stdio::piped()).spawn().unwrap()
}

fn bystander() -> Child {
    Command::new("sleep").arg("1000").spawn().unwrap()
}

#[test]
fn when_the_pipe_ends_the_marked_die_and_the_directory_goes() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("pods/a")).unwrap();
    std::fs::write(directory.path().join("pods/a/file"), "x").unwrap();
    let guard = Guard::start(directory.path()).unwrap();
    let mut marked = stubborn(guard.mark());
    let mut other = bystander();
    guard.stop().unwrap();
    marked.wait().unwrap();
    // All who had the pipe are gone, or this would wait.
    std::io::read_to_string(marked.stdout.take().unwrap()).unwrap();
    assert!(!directory.path().exists());
    assert!(other.try_wait().unwrap().is_none(), "somebody else was hit");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_guard_that_nobody_stopped_cleans_up_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    drop(Guard::start(&path).unwrap());
    let end = Instant::now() + Duration::from_secs(60);
    while path.exists() {
        assert!(Instant::now() < end, "the directory is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}
