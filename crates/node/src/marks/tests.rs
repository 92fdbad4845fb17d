use std::process::{Command, Stdio};

use super::*;

#[test]
fn only_those_who_carry_it_are_killed() {
    let (mark, other) = (Mark::new(CONTAINER), Mark::new(CONTAINER));
    let start = |mark: &Mark| {
        let script = "setsid sleep 1000 & setsid sleep 1000 & wait";
        Command::new("sh").args(["-c", script]).envs([mark.variable()]).stdout(Stdio::piped()).spawn().unwrap()
    };
    let (mut marked, mut bystander) = (start(&mark), start(&other));
    kill_all(&[mark]);
    std::io::read_to_string(marked.stdout.take().unwrap()).unwrap();
    marked.wait().unwrap();
    assert!(bystander.try_wait().unwrap().is_none());
    kill_all(&[other]);
    bystander.wait().unwrap();
}
