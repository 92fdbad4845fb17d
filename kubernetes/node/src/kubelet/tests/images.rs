//! Present and missing images: the messages of a kubelet 1.35 with containerd.

use super::*;

/// A node with the image `imported:1` from an archive, which cannot be pulled.
async fn node_with_archive() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let archive = crate::images::testing::archive(&folder, "docker.io/library/imported:1");
    let mut images = images();
    images.import(&archive, &folder.path().join("images")).unwrap();
    let mut fixture = Fixture::with_images(images).await;
    fixture.kept.push(folder);
    fixture
}

/// Runs an image with a pull policy; without one, with the API server's default.
async fn run(fixture: &Fixture, image: &str, policy: Option<&str>) {
    let mut asked = pod("web", SERVE);
    asked["spec"]["containers"][0]["image"] = image.into();
    if let Some(policy) = policy {
        asked["spec"]["containers"][0]["imagePullPolicy"] = policy.into();
    }
    fixture.create(asked).await;
}

fn waiting_message(pod: &Pod) -> String {
    main_status(pod).state.unwrap().waiting.unwrap().message.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn imported_image_runs_by_its_tag_and_status_has_its_complete_name() {
    let fixture = node_with_archive().await;
    run(&fixture, "imported:1", None).await;
    let pod = fixture.until("web", is_ready).await;
    let status = main_status(&pod);
    assert_eq!(status.image, "docker.io/library/imported:1");
    assert!(status.image_id.starts_with("docker.io/library/imported@sha256:"), "{}", status.image_id);
    fixture.delete("web").await;
}

/// The default policy is fixed when a pod is created: it stays when the image is changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn default_policy_of_an_untagged_image_sticks_and_keeps_an_imported_image_from_running() {
    let fixture = node_with_archive().await;
    run(&fixture, "imported", None).await;
    fixture.until("web", |pod| waits_for(pod, "ImagePullBackOff")).await;
    let patch = Patch::Strategic(json!({ "spec": { "containers": [{ "name": "main", "image": "imported:1" }] } }));
    fixture.pods.patch("web", &PatchParams::default(), &patch).await.unwrap();
    let pod = fixture
        .until("web", |pod| waits_for(pod, "ImagePullBackOff") && waiting_message(pod).contains("imported:1\""))
        .await;
    let message = waiting_message(&pod);
    let words = "Back-off pulling image \"imported:1\": ErrImagePull: rpc error: code = NotFound desc = failed to pull and \
                 unpack image \"docker.io/library/imported:1\": failed to resolve reference \
                 \"docker.io/library/imported:1\": docker.io/library/imported:1: not found";
    assert!(message.starts_with(words), "{message}");
    assert!(
        message.ends_with(
            "(this cluster does not pull images, and has this image from an archive: set imagePullPolicy: IfNotPresent)"
        ),
        "{message}"
    );
    fixture.delete("web").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn image_that_is_never_pulled_must_be_present() {
    let fixture = node_with_archive().await;
    run(&fixture, "absent:1", Some("Never")).await;
    let pod = fixture.until("web", |pod| waits_for(pod, "ErrImageNeverPull")).await;
    let words = "Container image \"absent:1\" is not present with pull policy of Never";
    assert_eq!(waiting_message(&pod), words);
    let is_told = |events: &[(String, String)]| events.iter().any(|(_, note)| note == "Error: ErrImageNeverPull");
    let events = fixture.events("web", is_told).await;
    assert!(events.contains(&("ErrImageNeverPull".to_owned(), words.to_owned())), "{events:?}");
    let patch = Patch::Strategic(json!({ "spec": { "containers": [{ "name": "main", "image": "imported:1" }] } }));
    fixture.pods.patch("web", &PatchParams::default(), &patch).await.unwrap();
    fixture.until("web", is_ready).await;
    fixture.delete("web").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_name_is_refused_as_a_kubelet_does() {
    let fixture = Fixture::start().await;
    run(&fixture, "Not A Valid:Image", None).await;
    let pod = fixture.until("web", |pod| waits_for(pod, "InvalidImageName")).await;
    let words = "Failed to apply default image tag \"Not A Valid:Image\": couldn't parse image name \"Not A Valid:Image\": \
                 invalid reference format: repository name (library/Not A Valid) must be lowercase";
    assert_eq!(waiting_message(&pod), words);
    let is_told = |events: &[(String, String)]| events.iter().any(|(_, note)| note == "Error: InvalidImageName");
    let events = fixture.events("web", is_told).await;
    assert!(events.contains(&("InspectFailed".to_owned(), words.to_owned())), "{events:?}");
    fixture.delete("web").await;
}

/// As recorded: `Pulling` and `BackOff` are Normal, `Failed` is a Warning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_pull_has_the_events_of_a_kubelet() {
    let fixture = Fixture::start().await;
    run(&fixture, "registry.example.com/team/none:1", None).await;
    fixture.events("web", |events| events.iter().any(|(_, note)| note == "Error: ImagePullBackOff")).await;
    let api = Api::<Event>::namespaced(fixture.client.clone(), "default");
    let list = ListParams::default().fields("involvedObject.name=web");
    let told: Vec<_> = api.list(&list).await.unwrap().items;
    let told: Vec<_> =
        told.into_iter().map(|event| (event.type_.unwrap(), event.reason.unwrap(), event.message.unwrap())).collect();
    for (kind, reason, note) in [
        ("Normal", "Pulling", "Pulling image \"registry.example.com/team/none:1\""),
        (
            "Warning",
            "Failed",
            "Failed to pull image \"registry.example.com/team/none:1\": rpc error: code = NotFound desc = ",
        ),
        ("Warning", "Failed", "Error: ErrImagePull"),
        ("Normal", "BackOff", "Back-off pulling image \"registry.example.com/team/none:1\""),
        ("Warning", "Failed", "Error: ImagePullBackOff"),
    ] {
        let is_told = told.iter().any(|(k, r, n)| k == kind && r == reason && n.starts_with(note));
        assert!(is_told, "{kind} {reason} {note}\n{told:#?}");
    }
    fixture.delete("web").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn image_that_is_always_pulled_is_pulled_where_a_registry_has_it() {
    let fixture = Fixture::start().await;
    run(&fixture, "shell:1", Some("Always")).await;
    fixture.until("web", is_ready).await;
    let events = fixture.events("web", |events| events.len() >= 4).await;
    let reasons: Vec<&str> = events.iter().map(|(reason, _)| reason.as_str()).collect();
    assert_eq!(reasons, ["Pulling", "Pulled", "Created", "Started"], "{events:?}");
    fixture.delete("web").await;
}
