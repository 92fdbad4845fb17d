use super::*;

struct Pod {
    _dir: tempfile::TempDir,
    pods: PathBuf,
}

impl Pod {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pods = dir.path().canonicalize().unwrap().join("pods");
        Self { _dir: dir, pods }
    }

    fn dir(&self) -> PathBuf {
        self.pods.join("one")
    }

    fn volume(&self, name: &str) -> PathBuf {
        let dir = self.dir().join("volumes").join(name);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn root(&self) -> PathBuf {
        self.dir().join("containers/main/root")
    }

    fn run(&self, mounts: Vec<MountPoint>) -> Result<Vec<PathBuf>, MountError> {
        let message = Some(PathBuf::from("dev/termination-log"));
        RootBuilder { dir: self.dir().join("containers/main"), pod: self.dir(), mounts, termination_message: message }
            .build()
    }
}

fn mount(path: &str, place: VolumeLocation, part: Option<&str>) -> MountPoint {
    MountPoint::new(path, &place, part).unwrap()
}

#[test]
fn each_mount_path_leads_to_its_volume() {
    let pod = Pod::new();
    let volume = pod.volume("data");
    fs::write(volume.join("file"), "1").unwrap();
    let outside = pod.run(vec![mount("/var/lib/app/", VolumeLocation::Directory(volume), None)]).unwrap();
    assert_eq!(fs::read_to_string(pod.root().join("var/lib/app/file")).unwrap(), "1");
    assert!(pod.root().join("tmp").is_dir() && pod.root().join("dev/termination-log").is_file());
    assert_eq!(outside, Vec::<PathBuf>::new());
}

#[test]
fn mounts_may_be_within_mounts() {
    let pod = Pod::new();
    let outer = pod.volume("outer");
    let inner = pod.volume("inner");
    let deep = pod.volume("deep");
    fs::write(deep.join("file"), "deep").unwrap();
    let mounts = || {
        vec![
            mount("/a/b/c/d", VolumeLocation::Written(deep.clone()), None),
            mount("/a/b", VolumeLocation::Directory(inner.clone()), None),
            mount("/a", VolumeLocation::Directory(outer.clone()), None),
        ]
    };
    pod.run(mounts()).unwrap();
    // And once more, as when a container starts again.
    pod.run(mounts()).unwrap();
    assert_eq!(fs::read_to_string(pod.root().join("a/b/c/d/file")).unwrap(), "deep");
    fs::write(pod.root().join("a/b/new"), "").unwrap();
    assert!(inner.join("new").exists());
}

#[test]
fn a_part_of_a_written_volume_is_a_copy_and_of_another_the_thing_itself() {
    let pod = Pod::new();
    let written = pod.volume("written");
    let data = pod.volume("data");
    fs::write(written.join("app.yaml"), "1").unwrap();
    pod.run(vec![
        mount("/etc/app.yaml", VolumeLocation::Written(written.clone()), Some("app.yaml")),
        mount("/data", VolumeLocation::Directory(data.clone()), Some("a/b")),
    ])
    .unwrap();
    fs::write(written.join("app.yaml"), "2").unwrap();
    assert_eq!(fs::read_to_string(pod.root().join("etc/app.yaml")).unwrap(), "1");
    fs::write(pod.root().join("data/file"), "").unwrap();
    assert!(data.join("a/b/file").exists());
}

#[test]
fn a_new_root_has_nothing_of_the_old_one_and_costs_no_volume_anything() {
    let pod = Pod::new();
    let data = pod.volume("data");
    let mounts = || vec![mount("/data", VolumeLocation::Directory(data.clone()), None)];
    pod.run(mounts()).unwrap();
    fs::write(pod.root().join("data/kept"), "").unwrap();
    fs::write(pod.root().join("gone"), "").unwrap();
    pod.run(mounts()).unwrap();
    assert!(pod.root().join("data/kept").exists() && !pod.root().join("gone").exists());
}

#[test]
fn a_link_that_another_pod_left_in_a_claim_is_replaced_and_anything_else_is_not() {
    let pod = Pod::new();
    let claim = pod.pods.join("../claim");
    let config = pod.volume("config");
    fs::create_dir_all(&claim).unwrap();
    let mounts = || {
        vec![
            mount("/data", VolumeLocation::Directory(claim.clone()), None),
            mount("/data/config", VolumeLocation::Written(config.clone()), None),
        ]
    };
    symlink(pod.pods.join("two/volumes/config"), claim.join("config")).unwrap();
    let outside = pod.run(mounts()).unwrap();
    assert_eq!(fs::read_link(claim.join("config")).unwrap(), config);
    assert_eq!(outside, [claim.canonicalize().unwrap().join("config")]);
    fs::remove_file(claim.join("config")).unwrap();
    fs::write(claim.join("config"), "precious").unwrap();
    let error = pod.run(mounts()).unwrap_err().to_string();
    assert!(
        error.starts_with("volumeMount \"/data/config\": the volume that contains the mount path already has a file"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(claim.join("config")).unwrap(), "precious");
}

#[test]
fn no_path_leaves_the_root_or_the_volume() {
    let pod = Pod::new();
    let data = pod.volume("data");
    pod.run(vec![mount("/../../../../escaped", VolumeLocation::Directory(data.clone()), None)]).unwrap();
    assert!(pod.root().join("escaped").is_dir());
    for part in ["../up", "a/../../up", "/etc"] {
        assert!(MountPoint::new("/data", &VolumeLocation::Directory(data.clone()), Some(part)).is_err(), "{part}");
    }
    assert!(MountPoint::new("/", &VolumeLocation::Directory(data), None).is_err());
}
