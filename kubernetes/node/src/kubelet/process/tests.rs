use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::*;
use crate::process_tags::ClusterTag;

fn start(launch: &ProcessSpec) -> Result<(ContainerProcess, ProcessOutput), ProcessStartError> {
    super::start_process(launch, &ClusterTag::new().unwrap().new_container_tag())
}

fn shell(script: &str) -> ProcessSpec {
    ProcessSpec {
        program: "sh".into(),
        displayed_program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into()), ("GREETING".into(), "hello".into())],
        dir: "/".into(),
        root: "/".into(),
    }
}

async fn said(mut output: ProcessOutput) -> (String, String) {
    let mut out = String::new();
    let mut err = String::new();
    output.stdout.read_to_string(&mut out).await.unwrap();
    output.stderr.read_to_string(&mut err).await.unwrap();
    (out, err)
}

#[tokio::test]
async fn it_runs_with_exactly_its_environment_and_its_exit_is_seen() {
    let (mut process, output) = start(&shell("echo $GREETING $HOME; pwd >&2; exit 3")).unwrap();
    assert_eq!(process.wait_for_exit().await.unwrap().code, 3);
    assert_eq!(said(output).await, ("hello\n".into(), "/\n".into()));
}

#[tokio::test]
async fn a_signal_is_seen_in_the_exit_code() {
    let (mut process, _output) = start(&shell("sleep 1000")).unwrap();
    process.terminate();
    assert_eq!(process.wait_for_exit().await.unwrap().code, 143);
}

#[tokio::test]
async fn what_it_started_goes_with_it() {
    let (mut process, output) = start(&shell("sleep 1000 & echo $!")).unwrap();
    assert_eq!(process.wait_for_exit().await.unwrap().code, 0);
    // The output ends only when no process holds it any more.
    let (child, _) = tokio::time::timeout(Duration::from_secs(20), said(output)).await.unwrap();
    assert!(child.trim().parse::<u32>().is_ok());
}

#[tokio::test]
async fn dropped_it_is_killed() {
    let (process, output) = start(&shell("trap '' TERM; sleep 1000 & wait")).unwrap();
    drop(process);
    tokio::time::timeout(Duration::from_secs(20), said(output)).await.unwrap();
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let launch = |program: &str, dir: &str| ProcessSpec {
        program: program.into(),
        displayed_program: program.into(),
        dir: dir.into(),
        ..shell("")
    };
    let inside = ProcessSpec { displayed_program: "/bin/app".into(), ..launch("/tmp/pods/root/bin/app", "/") };
    for (launch, why) in [
        (launch("no-such-program", "/"), "exec: \"no-such-program\": executable file not found in $PATH"),
        (launch("/no/such/file", "/"), "exec: \"/no/such/file\": stat: no such file or directory"),
        (inside, "exec: \"/bin/app\": stat: no such file or directory"),
        (launch("sh", "/no/such/directory"), "chdir to \"/no/such/directory\": no such directory"),
        (launch("/etc/passwd", "/"), "exec: \"/etc/passwd\": Permission denied"),
    ] {
        let said = start(&launch).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
}
