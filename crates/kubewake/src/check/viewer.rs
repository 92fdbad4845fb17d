//! Whether the viewer is there. Only who named one has to have one.

use std::time::Duration;

use super::{
    Scene, code,
    line::{Line, Section},
};
use crate::{
    output::number::{bytes, count},
    survey::viewer::{Info, info},
    up::notice::Notice,
    web::Web,
};

/// It answers from memory.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) async fn look(scene: &Scene<'_>) -> Section {
    let viewer = &scene.viewer;
    let lines = match info(&Web::new(PATIENCE), viewer).await {
        Ok(info) => vec![Line::passed(code::KW801, &viewer.url), room(&info)],
        Err(error)
            if viewer.is_named || Notice::find().is_some_and(|up| up.page.trim_end_matches('/') == viewer.url) =>
        {
            let mend = "kubewake up   # or: kubewake viewer";
            vec![Line::failed(code::KW801, format!("{}: {error}", viewer.url), mend)]
        }
        Err(_) => Vec::new(),
    };
    Section { name: "Viewer", lines }
}

fn room(info: &Info) -> Line {
    let store = &info.store;
    let held = format!("{} of {}", bytes(store.bytes), bytes(store.limit));
    let lost =
        [(store.dropped.traces, "old trace", "had to make room"), (store.refused.traces, "trace", "too large for it")];
    let lost = lost.into_iter().filter(|(traces, ..)| *traces > 0);
    let told: String = lost.map(|(traces, noun, what)| format!("; {} {what}", count(traces, noun))).collect();
    match told.is_empty() {
        true => Line::passed(code::KW802, held),
        false => Line::warned(code::KW802, held + &told, "kubewake viewer --memory 1GiB   # or --data-dir DIR"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::viewer::{Lost, Store};

    #[test]
    fn what_was_too_large_is_not_said_to_have_made_room() {
        let of = |dropped, refused| {
            let lost = |traces| Lost { traces, spans: 9 };
            let store = Store { limit: 1 << 20, dropped: lost(dropped), refused: lost(refused), ..Store::default() };
            room(&Info { store, ..Info::default() }).detail
        };
        assert_eq!(of(0, 0), "0 B of 1 MiB");
        assert_eq!(of(0, 1), "0 B of 1 MiB; 1 trace too large for it");
        assert_eq!(of(2, 3), "0 B of 1 MiB; 2 old traces had to make room; 3 traces too large for it");
    }
}
