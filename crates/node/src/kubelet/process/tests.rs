use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::*;
use crate::marks::ClusterMark;

fn start(launch: &Launch) -> Result<(Process, Output), StartError> {
    super::start(launch, &ClusterMark::new().unwrap().container())
}

fn shell(script: &str) -> Launch {
    Launch {
        program: "sh".into(),
        written: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into()), ("GREETING".into(), "hello".into())],
        dir: "/".into(),
        root: "/".into(),
    }
}

async fn said(mut output: Output) -> (String, String) {
    let (mut out, mut err) = (String::new(), String::new());
    output.stdout.read_to_string(&mut out).await.unwrap();
    output.stderr.read_to_string(&mut err).await.unwrap();
    (out, err)
}

#[tokio::test]
async fn it_runs_with_exactly_its_environment_and_its_exit_is_seen() {
    let (mut process, output) = start(&shell("echo $GREETING $HOME; pwd >&2; exit 3")).unwrap();
    assert_eq!(process.ended().await.unwrap().code, 3);
    assert_eq!(said(output).await, ("hello\n".into(), "/\n".into()));
}

#[tokio::test]
async fn a_signal_is_seen_in_the_exit_code() {
    let (mut process, _output) = start(&shell("sleep 1000")).unwrap();
    process.terminate();
    assert_eq!(process.ended().await.unwrap().code, 143);
}

#[tokio::test]
async fn what_it_started_goes_with_it() {
    let (mut process, output) = start(&shell("sleep 1000 & echo $!")).unwrap();
    assert_eq!(process.ended().await.unwrap().code, 0);
    // The output ends only when nobody has it any more.
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
    let launch = |program: &str, dir: &str| Launch {
        program: program.into(),
        written: program.into(),
        dir: dir.into(),
        ..shell("")
    };
    let inside = Launch { written: "/bin/app".into(), ..launch("/tmp/pods/root/bin/app", "/") };
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
