//! Checks of the cluster: that it can be reached, and that its version is supported.

use kubewake_release::OLDEST_KUBERNETES_MINOR as OLDEST;
use kubewake_trail::error_chain;

use super::{
    codes,
    report::{CheckLine, CheckSection},
};
use crate::discovery::{ClusterArgs, ClusterConnection};

/// Returns a connection if the cluster responds.
pub(super) async fn check(args: &ClusterArgs) -> (CheckSection, Option<ClusterConnection>) {
    let mut lines = Vec::new();
    let mut found = None;
    match args.resolve_cluster().await {
        Ok(cluster) => {
            lines.push(CheckLine::passed(codes::KW101, format!("{} ({})", cluster.server, cluster.source)));
            found = check_api_server(cluster, &mut lines).await;
        }
        Err(error) => lines.push(CheckLine::failed(
            codes::KW101,
            error_chain(error.as_ref()),
            "kubewake check --kubeconfig FILE\nkubewake up   # starts a cluster on this machine",
        )),
    }
    (CheckSection { name: "Cluster", lines }, found)
}

async fn check_api_server(cluster: ClusterConnection, lines: &mut Vec<CheckLine>) -> Option<ClusterConnection> {
    match cluster.client.apiserver_version().await {
        Ok(version) => {
            lines.push(CheckLine::passed(codes::KW102, ""));
            lines.push(check_version(&version.git_version, &version.minor));
            Some(cluster)
        }
        Err(error) => {
            let mend =
                "kubectl cluster-info   # if kubectl fails, too: check the kubeconfig, the network and the API server";
            lines.push(CheckLine::failed(codes::KW102, error_chain(&error), mend));
            None
        }
    }
}

fn check_version(version: &str, minor: &str) -> CheckLine {
    match minor.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<u32>() {
        Ok(minor) if minor < OLDEST => CheckLine::failed(
            codes::KW103,
            format!("the API server has version {version}, which is older than 1.{OLDEST}"),
            format!("upgrade the cluster to 1.{OLDEST} or newer"),
        ),
        Ok(_) => CheckLine::passed(codes::KW103, version),
        Err(_) => CheckLine::warned(
            codes::KW103,
            format!("failed to parse the version of the API server: {version:?}"),
            "kubectl version",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::report::CheckOutcome;

    #[test]
    fn versions_are_compared_as_providers_write_them() {
        let outcome = |minor: &str| check_version("v1", minor).outcome;
        assert_eq!(
            ["35", "30+", "29", "x"].map(outcome),
            [CheckOutcome::Passed, CheckOutcome::Passed, CheckOutcome::Failed, CheckOutcome::Warned]
        );
    }
}
