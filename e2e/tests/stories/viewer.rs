//! Somebody keeps a viewer open, and types what its document says.

use std::net::SocketAddr;

use kubewake_e2e::{free_address, process::ChildProcess};

use super::readme::{commands, shell};

#[test]
fn every_command_of_the_viewers_document_works() {
    let usual = ["127.0.0.1:16686", "127.0.0.1:4317", "127.0.0.1:4318"];
    let [page, grpc, http]: [SocketAddr; 3] = usual.map(|_| free_address());
    let swap = |text: &str| {
        usual
            .iter()
            .zip([page, grpc, http])
            .fold(text.to_owned(), |text, (usual, free)| text.replace(usual, &free.to_string()))
    };
    let folder = tempfile::tempdir().unwrap();
    let mut viewer = None;
    let mut answers = Vec::new();
    for command in commands("docs/viewer.md") {
        if command == "kubewake viewer" {
            let places = format!("{command} --listen {page} --otlp {grpc} --otlp-http {http}");
            let mut process = ChildProcess::start(&mut shell(&places, folder.path()));
            process.wait_until_ready();
            viewer = Some(process);
            continue;
        }
        assert!(command.starts_with("curl "), "nobody knows how to test {command:?}");
        let output = shell(&swap(&command), folder.path()).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        answers.push(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let [_sent, found, filtered, _exported, imported] = answers.as_slice() else { panic!("{answers:?}") };
    for answer in [found, filtered] {
        assert!(answer.contains(r#""rootName":"checkout""#) && answer.contains(r#""matched":1"#), "{answer}");
    }
    // It is here already.
    assert!(imported.contains(r#""spans":0"#), "{imported}");
    drop(viewer);
}
