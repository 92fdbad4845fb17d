use std::{fs, os::unix::fs::symlink};

use super::*;
use crate::client::DialAddress;

#[derive(Debug)]
struct NoServices;

impl ServiceAddressResolver for NoServices {
    fn resolve(&self, _: &str, name: &str, _: u16) -> Result<DialAddress, String> {
        Err(name.to_owned())
    }
}

fn document(ratio: u32) -> String {
    format!("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nsamplingRatePerMillion: {ratio}\n")
}

fn settings(file: PathBuf) -> TracingSettings {
    TracingSettings { file, trusted_groups: vec!["a".into()], services: Arc::new(NoServices), instance: "i".into() }
}

fn samples_all(pipeline: &SpanPipeline) -> bool {
    (0..64).all(|_| pipeline.samples(crate::trace::TraceId::random()))
}

/// Notifications of the kernel come with a delay.
async fn eventually(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_changed_file_is_taken_up_and_a_bad_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tracing.yaml");
    fs::write(&file, document(0)).unwrap();
    let tracing = TracingReloader::start(settings(file.clone())).unwrap();
    let pipeline = Arc::clone(tracing.pipeline());
    assert!(!samples_all(&pipeline) && pipeline.trusts(|group| group == "a"));
    fs::write(&file, document(1_000_000) + "trustedGroups: [b]").unwrap();
    eventually(|| samples_all(&pipeline)).await;
    assert!(pipeline.trusts(|group| group == "b") && !pipeline.trusts(|group| group == "a"));
    fs::write(&file, document(2_000_000)).unwrap();
    tracing.reload();
    fs::remove_file(&file).unwrap();
    tracing.reload();
    tokio::task::yield_now().await;
    assert!(samples_all(&pipeline), "what was in force goes on");
    tracing.stop().await;
}

#[tokio::test]
async fn a_mounted_config_map_is_swapped_by_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (version, ratio) in [("..1", 0), ("..2", 1_000_000)] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("tracing.yaml"), document(ratio)).unwrap();
    }
    symlink("..1", at("..data")).unwrap();
    symlink("..data/tracing.yaml", at("tracing.yaml")).unwrap();
    let tracing = TracingReloader::start(settings(at("tracing.yaml"))).unwrap();
    let pipeline = Arc::clone(tracing.pipeline());
    symlink("..2", at("..data_tmp")).unwrap();
    fs::rename(at("..data_tmp"), at("..data")).unwrap();
    eventually(|| samples_all(&pipeline)).await;
}

#[tokio::test]
async fn without_a_usable_file_it_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tracing.yaml");
    assert!(matches!(TracingReloader::start(settings(file.clone())), Err(TracingConfigError::Read { .. })));
    fs::write(&file, document(2_000_000)).unwrap();
    assert!(matches!(TracingReloader::start(settings(file)), Err(TracingConfigError::Invalid(_))));
}
