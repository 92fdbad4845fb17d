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
    match store.dropped.traces {
        0 => Line::passed(code::KW802, held),
        dropped => {
            let detail = format!("{held}; {} had to make room", count(dropped, "old trace"));
            Line::warned(code::KW802, detail, "kubewake viewer --memory 1GiB   # or --data-dir DIR")
        }
    }
}
