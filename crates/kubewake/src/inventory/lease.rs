//! The leader of the operators, from its Lease.

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kubewake_operator::names;

const CLOCK_SKEW_SECONDS: i64 = 5;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaseHolder {
    /// Identity of the leader; empty if there is none.
    pub(crate) holder: String,
    pub(crate) seconds_since_renewal: i64,
    /// Whether the Lease has expired.
    pub(crate) is_vacant: bool,
}

/// The holder of the Lease, if it exists.
pub(crate) async fn fetch_leader(client: &Client, namespace: &str) -> Result<Option<LeaseHolder>, kube::Error> {
    let lease = Api::<Lease>::namespaced(client.clone(), namespace).get_opt(names::LEASE_NAME).await?;
    Ok(lease.map(|lease| read_lease(&lease, jiff::Timestamp::now().as_second())))
}

fn read_lease(lease: &Lease, now: i64) -> LeaseHolder {
    let spec = lease.spec.clone().unwrap_or_default();
    let holder = spec.holder_identity.unwrap_or_default();
    let renewed = spec.renew_time.map_or(0, |time| time.0.as_second());
    let silent_seconds = now.saturating_sub(renewed).max(0);
    let patience = i64::from(spec.lease_duration_seconds.unwrap_or(0)) + CLOCK_SKEW_SECONDS;
    let is_gone = holder.is_empty() || silent_seconds > patience;
    LeaseHolder { holder, seconds_since_renewal: silent_seconds, is_vacant: is_gone }
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
        let fresh = read_lease(&lease("a"), renewed + 14);
        assert_eq!(fresh, LeaseHolder { holder: "a".into(), seconds_since_renewal: 14, is_vacant: false });
        assert!(read_lease(&lease("a"), renewed + 21).is_vacant);
        assert!(read_lease(&lease(""), renewed).is_vacant, "the holder released the Lease");
        assert!(read_lease(&Lease::default(), renewed).is_vacant);
    }
}
