use super::*;

fn images() -> ImageStore {
    ImageStore::default().with_image("kubewake/collector:1", ImageEntrypoint::new("/bin/kubewake").arg("collector"))
}

fn named(text: &str) -> NormalizedReference {
    NormalizedReference::parse(text).unwrap()
}

#[test]
fn image_is_found_under_its_complete_name_only() {
    for text in ["kubewake/collector:1", "docker.io/kubewake/collector:1"] {
        assert_eq!(images().find_present(&named(text)).unwrap().entrypoint.args, ["collector"], "{text}");
        assert_eq!(images().pull(&named(text)).unwrap().name, "docker.io/kubewake/collector:1");
    }
    for text in ["kubewake/collector", "kubewake/collector:2", "collector:1", "example.com:5000/kubewake/collector:1"] {
        assert!(images().find_present(&named(text)).is_none(), "{text}");
    }
    let images = images().with_image("python", ImageEntrypoint::new("/bin/python3"));
    assert!(images.find_present(&named("docker.io/library/python:latest")).is_some());
    assert!(images.find_present(&named("python:3")).is_none());
}

#[test]
fn who_asks_for_an_unknown_image_learns_which_are_known() {
    let images = images().with_image("web", ImageEntrypoint::new("/bin/web"));
    let said = images.pull(&named("nginx:1.29")).unwrap_err().to_string();
    assert_eq!(
        said,
        "rpc error: code = NotFound desc = failed to pull and unpack image \"docker.io/library/nginx:1.29\": failed to \
         resolve reference \"docker.io/library/nginx:1.29\": docker.io/library/nginx:1.29: not found (this cluster does not \
         pull images; it has: docker.io/kubewake/collector:1, docker.io/library/web:latest. Add a program with --image \
         docker.io/library/nginx:1.29=PATH)"
    );
}

#[test]
fn entries_are_checked_when_they_are_given() {
    let mut images = images();
    images.add_entry("shell=/bin/sh").unwrap();
    assert_eq!(images.find_present(&named("shell")).unwrap().entrypoint, ImageEntrypoint::new("/bin/sh"));
    for (bad, why) in [
        ("shell", "NAME=PATH"),
        ("=/bin/sh", "NAME=PATH"),
        ("shell=", "NAME=PATH"),
        ("shell=/no/such/file", "file not found"),
        ("shell=/etc", "it is not a file"),
        ("shell=/etc/passwd", "it is not executable"),
        ("Shell Script=/bin/sh", "is not a valid image name"),
    ] {
        let said = images.add_entry(bad).unwrap_err().to_string();
        assert!(said.contains(why), "{bad}: {said}");
    }
}

#[test]
fn a_name_is_given_once() {
    let mut images = images();
    images.add_entry("kubewake/collector:1=/bin/sh").unwrap();
    assert_eq!(
        images.find_present(&named("kubewake/collector:1")).unwrap().entrypoint,
        ImageEntrypoint::new("/bin/sh")
    );
    let twice = images.add_entry("docker.io/kubewake/collector:1=/bin/cat").unwrap_err().to_string();
    assert_eq!(twice, "image \"docker.io/kubewake/collector:1\" is defined twice: it already has program \"/bin/sh\"");
}

#[test]
fn a_script_without_its_interpreter_is_found_at_once() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    std::fs::write(&script, "#! /no/such/interpreter -x\necho\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut images = images();
    let said = images.add_entry(&format!("script={}", script.display())).unwrap_err().to_string();
    assert!(said.ends_with("the interpreter \"/no/such/interpreter\" of the script was not found"), "{said}");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    images.add_entry(&format!("script={}", script.display())).unwrap();
}
