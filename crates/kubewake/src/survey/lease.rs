//! Who leads the operators.

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kubewake_operator::names;

/// Clocks differ a little.
const SLACK_SECONDS: i64 = 5;

/// What the Lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leader {
    /// Nobody, if it is empty.
    pub(crate) holder: String,
    /// When it last said that it is there.
    pub(crate) silent_seconds: i64,
    /// Whether that is too long ago.
    pub(crate) is_gone: bool,
}

/// The leader, if there ever was one.
pub(crate) async fn leader(client: &Client, namespace: &str) -> Result<Option<Leader>, kube::Error> {
    let lease = Api::<Lease>::namespaced(client.clone(), namespace).get_opt(names::LEASE).await?;
    Ok(lease.map(|lease| read(&lease, jiff::Timestamp::now().as_second())))
}

fn read(lease: &Lease, now: i64) -> Leader {
    let spec = lease.spec.clone().unwrap_or_default();
    let holder = spec.holder_identity.unwrap_or_default();
    let renewed = spec.renew_time.map_or(0, |time| time.0.as_second());
    let silent_seconds = now.saturating_sub(renewed).max(0);
    let patience = i64::from(spec.lease_duration_seconds.unwrap_or(0)) + SLACK_SECONDS;
    let is_gone = holder.is_empty() || silent_seconds > patience;
    Leader { holder, silent_seconds, is_gone }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_spoken_for_too_long_is_gone() {
        let lease = |holder: &str| {
            let spec = serde_json::json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"});
            serde_json::from_value::<Lease>(serde_json::json!({"metadata": {}, "spec": spec})).unwrap()
        };
        let renewed = "2026-01-01T00:00:00Z".parse::<jiff::Timestamp>().unwrap().as_second();
        let fresh = read(&lease("a"), renewed + 14);
        assert_eq!(fresh, Leader { holder: "a".into(), silent_seconds: 14, is_gone: false });
        assert!(read(&lease("a"), renewed + 21).is_gone);
        assert!(read(&lease(""), renewed).is_gone, "it was given back");
        assert!(read(&Lease::default(), renewed).is_gone);
    }
}
