use super::*;

fn images() -> Images {
    Images::default().with("kubewake/collector", Program::new("/bin/kubewake").arg("collector"))
}

#[test]
fn tags_digests_and_the_usual_registry_do_not_matter() {
    for image in [
        "kubewake/collector",
        "kubewake/collector:latest",
        "kubewake/collector:1.2@sha256:0a1b",
        "docker.io/kubewake/collector@sha256:0a1b",
    ] {
        assert_eq!(images().find(image).unwrap().args, ["collector"], "{image}");
    }
    assert!(images().find("example.com:5000/kubewake/collector").is_err());
    let images = images().with("example.com:5000/web:1", Program::new("/bin/web"));
    assert!(images.find("example.com:5000/web").is_ok());
    let images = images.with("python", Program::new("/bin/python3"));
    assert!(images.find("docker.io/library/python:3").is_ok());
}

#[test]
fn who_asks_for_an_unknown_image_learns_which_are_known() {
    let images = images().with("web", Program::new("/bin/web"));
    let said = images.find("nginx:1.29").unwrap_err().to_string();
    assert_eq!(
        said,
        "this node has no program for image \"nginx:1.29\"; it has: kubewake/collector, web. \
         Give it one with --image nginx=PATH"
    );
}

#[test]
fn entries_are_checked_when_they_are_given() {
    let mut images = images();
    images.add("shell=/bin/sh").unwrap();
    assert_eq!(images.find("shell").unwrap(), &Program::new("/bin/sh"));
    for (bad, why) in [
        ("shell", "NAME=PATH"),
        ("=/bin/sh", "NAME=PATH"),
        ("shell=", "NAME=PATH"),
        ("shell=/no/such/file", "there is no such file"),
        ("shell=/etc", "it is not a file"),
        ("shell=/etc/passwd", "it is not executable"),
    ] {
        let said = images.add(bad).unwrap_err().to_string();
        assert!(said.contains(why), "{bad}: {said}");
    }
}

#[test]
fn a_name_is_given_once() {
    let mut images = images();
    images.add("kubewake/collector=/bin/sh").unwrap();
    assert_eq!(images.find("kubewake/collector").unwrap(), &Program::new("/bin/sh"));
    let twice = images.add("docker.io/kubewake/collector:2=/bin/cat").unwrap_err().to_string();
    assert_eq!(twice, "image \"kubewake/collector\" is given twice: it is \"/bin/sh\" already");
}

#[test]
fn a_script_without_its_interpreter_is_found_at_once() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    std::fs::write(&script, "#! /no/such/interpreter -x\necho\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut images = images();
    let said = images.add(&format!("script={}", script.display())).unwrap_err().to_string();
    assert!(said.ends_with("it is a script for \"/no/such/interpreter\", and there is no such file"), "{said}");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    images.add(&format!("script={}", script.display())).unwrap();
}
