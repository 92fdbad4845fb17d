//! The collector as a log agent, configured as the operator configures it.

use std::{fs, path::PathBuf};

use anyhow::Context;

use super::containers::remove;
use crate::bench::{
    cluster_stub::ClusterStub, config::CollectorFile, directory, process::BenchProcess, sink::BenchSink,
};

/// An agent that reads the logs below a folder, which is empty at first.
pub(super) struct LogAgent {
    pub(super) process: BenchProcess,
    pub(super) sink: BenchSink,
    /// Where it finds the folders of pods.
    pub(super) pods: PathBuf,
}

impl LogAgent {
    pub(super) fn start(name: &str, stub: &ClusterStub, parses_json: bool) -> anyhow::Result<Self> {
        Self::start_with(name, stub, parses_json, "")
    }

    /// Starts an agent whose pipeline has a further processor, as YAML.
    pub(super) fn start_with(
        name: &str,
        stub: &ClusterStub,
        parses_json: bool,
        processor: &str,
    ) -> anyhow::Result<Self> {
        let folder = directory().join(name);
        remove(&folder)?;
        let (pods, state) = (folder.join("pods"), folder.join("state"));
        fs::create_dir_all(&pods)?;
        fs::create_dir_all(&state)?;
        let kubeconfig = folder.join("kubeconfig");
        fs::write(&kubeconfig, stub.kubeconfig()).context("failed to write the kubeconfig")?;
        let sink = BenchSink::start(&format!("{name}-sink"))?;
        let parsing = if parses_json {
            "    body_parsing: {json: true, message: true, severity: true, trace_context: true}\n"
        } else {
            ""
        };
        let more = if processor.is_empty() { "" } else { ", filter" };
        let config = CollectorFile::new(name)?;
        config.write_text(&format!(
            "extensions:\n  file_storage:\n    directory: {state}\nreceivers:\n  file_log:\n    include: ['{pods}/*_*/*/*.log']\n    \
             start_at: beginning\n    include_file_name: false\n    storage: file_storage\n    \
             operators: [{{type: container}}]\n{parsing}processors:\n  memory_limiter:\n    check_interval: 1s\n    \
             limit_mib: 200\n  k8s_attributes:\n    auth_type: kubeConfig\n    kube_config_path: {kubeconfig}\n    \
             wait_for_metadata: true\n    extract:\n      labels: [{{tag_name: team, key: team}}]\n    \
             pod_association: [{{sources: [{{from: resource_attribute, name: k8s.pod.uid}}]}}]\n{processor}exporters:\n  \
             otlp:\n    endpoint: {address}\n    compression: none\n    tls:\n      insecure: true\nservice:\n  \
             extensions: [file_storage]\n  telemetry:\n    metrics:\n      level: none\n  pipelines:\n    logs:\n      \
             receivers: [file_log]\n      processors: [memory_limiter, k8s_attributes{more}]\n      exporters: [otlp]\n",
            state = state.display(),
            pods = pods.display(),
            kubeconfig = kubeconfig.display(),
            address = sink.address,
        ))?;
        let process = config.start()?;
        Ok(Self { process, sink, pods })
    }
}
