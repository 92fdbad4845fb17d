//! Checks of the viewer. It is required only if an argument names it.

use std::time::Duration;

use super::{
    CheckContext, codes,
    report::{CheckLine, CheckSection},
};
use crate::{
    http_client::JsonHttpClient,
    inventory::viewer::{ViewerInfo, fetch_info},
    output::units::{format_bytes, format_count},
    up::instance_record::InstanceRecord,
};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) async fn check(scene: &CheckContext<'_>) -> CheckSection {
    let viewer = &scene.viewer;
    let lines = match fetch_info(&JsonHttpClient::new(REQUEST_TIMEOUT), viewer).await {
        Ok(info) => vec![CheckLine::passed(codes::KW801, &viewer.url), check_capacity(&info)],
        Err(error)
            if viewer.is_named
                || InstanceRecord::find_newest().is_some_and(|up| up.page.trim_end_matches('/') == viewer.url) =>
        {
            let mend = "kubewake up   # or: kubewake viewer";
            vec![CheckLine::failed(codes::KW801, format!("{}: {error}", viewer.url), mend)]
        }
        Err(_) => Vec::new(),
    };
    CheckSection { name: "Viewer", lines }
}

fn check_capacity(info: &ViewerInfo) -> CheckLine {
    let store = &info.store;
    let held = format!("{} of {}", format_bytes(store.bytes), format_bytes(store.limit));
    let lost =
        [(store.dropped.traces, "old trace", "evicted"), (store.refused.traces, "trace", "too large for the store")];
    let lost = lost.into_iter().filter(|(traces, ..)| *traces > 0);
    let told: String = lost.map(|(traces, noun, what)| format!("; {} {what}", format_count(traces, noun))).collect();
    if told.is_empty() {
        CheckLine::passed(codes::KW802, held)
    } else {
        CheckLine::warned(codes::KW802, held + &told, "kubewake viewer --memory 1GiB   # or --data-dir DIR")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::viewer::{LostCounts, StoreInfo};

    #[test]
    fn what_was_too_large_is_not_said_to_have_made_room() {
        let of = |dropped, refused| {
            let lost = |traces| LostCounts { traces, spans: 9 };
            let store =
                StoreInfo { limit: 1 << 20, dropped: lost(dropped), refused: lost(refused), ..StoreInfo::default() };
            check_capacity(&ViewerInfo { store, ..ViewerInfo::default() }).detail
        };
        assert_eq!(of(0, 0), "0 B of 1 MiB");
        assert_eq!(of(0, 1), "0 B of 1 MiB; 1 trace too large for the store");
        assert_eq!(of(2, 3), "0 B of 1 MiB; 2 old traces evicted; 3 traces too large for the store");
    }
}
