//! Whether there is a cluster, and one that fits.

use kubewake_release::OLDEST_KUBERNETES_MINOR as OLDEST;
use kubewake_trail::in_words;

use super::{
    code,
    line::{Line, Section},
};
use crate::place::{Cluster, ClusterArgs};

/// The cluster, if it answers.
pub(super) async fn look(args: &ClusterArgs) -> (Section, Option<Cluster>) {
    let (mut lines, mut found) = (Vec::new(), None);
    match args.cluster().await {
        Ok(cluster) => {
            lines.push(Line::passed(code::KW101, format!("{} ({})", cluster.server, cluster.source)));
            found = answers(cluster, &mut lines).await;
        }
        Err(error) => lines.push(Line::failed(
            code::KW101,
            in_words(error.as_ref()),
            "kubewake check --kubeconfig FILE\nkubewake up   # for a cluster on this machine",
        )),
    }
    (Section { name: "Cluster", lines }, found)
}

async fn answers(cluster: Cluster, lines: &mut Vec<Line>) -> Option<Cluster> {
    match cluster.client.apiserver_version().await {
        Ok(version) => {
            lines.push(Line::passed(code::KW102, ""));
            lines.push(is_supported(&version.git_version, &version.minor));
            Some(cluster)
        }
        Err(error) => {
            let mend = "kubectl cluster-info   # does it answer kubectl? If not, mend the kubeconfig, the network, or the server";
            lines.push(Line::failed(code::KW102, in_words(&error), mend));
            None
        }
    }
}

fn is_supported(version: &str, minor: &str) -> Line {
    match minor.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<u32>() {
        Ok(minor) if minor < OLDEST => Line::failed(
            code::KW103,
            format!("{version} is older than 1.{OLDEST}"),
            format!("upgrade the cluster to 1.{OLDEST} or newer"),
        ),
        Ok(_) => Line::passed(code::KW103, version),
        Err(_) => {
            Line::warned(code::KW103, format!("{version:?} is no version that can be compared"), "kubectl version")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::line::Outcome;

    #[test]
    fn versions_are_compared_as_providers_write_them() {
        let outcome = |minor: &str| is_supported("v1", minor).outcome;
        assert_eq!(
            ["35", "30+", "29", "x"].map(outcome),
            [Outcome::Passed, Outcome::Passed, Outcome::Failed, Outcome::Warned]
        );
    }
}
