//! How commands reach a cluster.

use std::path::Path;

use anyhow::Context;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// By the given kubeconfig, else as kubectl finds it, else as a pod does.
pub(crate) async fn client(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    let config = match kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?
        }
        None => Config::infer().await.context("there is no cluster: name one by --kubeconfig or KUBECONFIG")?,
    };
    Ok(Client::try_from(config)?)
}
