//! Reports TracePipelines that are deleted, which interrupts the delivery of spans, and that are created again.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, TryStreamExt as _};
use kube::{
    Api, Client, ResourceExt as _,
    runtime::{WatchStreamExt as _, watcher},
};
use kubewake_api::v1alpha1::TracePipeline;

/// Names of deleted pipelines, of which there are few.
#[derive(Debug, Default)]
struct DeletedPipelines(BTreeSet<String>);

/// Only an automated client creates more.
const MAX_DELETED_NAMES: usize = 100;

/// Watches for ever, and reports deletions and creations.
pub(super) async fn report_changes(client: Client, say: impl Fn(&str)) {
    let mut gone = DeletedPipelines::default();
    let pipelines: Api<TracePipeline> = Api::all(client);
    let mut events = watcher(pipelines, watcher::Config::default()).default_backoff().into_stream().boxed();
    loop {
        let news = match events.try_next().await {
            Ok(Some(watcher::Event::Apply(it) | watcher::Event::InitApply(it))) => gone.record_creation(&it.name_any()),
            Ok(Some(watcher::Event::Delete(it))) => Some(gone.record_deletion(it.name_any())),
            // The watcher retries.
            Ok(Some(watcher::Event::Init | watcher::Event::InitDone)) | Err(_) => None,
            Ok(None) => return,
        };
        if let Some(news) = news {
            say(&news);
        }
    }
}

impl DeletedPipelines {
    fn record_deletion(&mut self, name: String) -> String {
        let news = format!("TracePipeline {name} was deleted: its spans are not recorded until you create it again");
        if self.0.len() < MAX_DELETED_NAMES {
            self.0.insert(name);
        }
        news
    }

    fn record_creation(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).then(|| format!("TracePipeline {name} was created again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_and_comes_is_told_once() {
        let mut gone = DeletedPipelines::default();
        assert_eq!(gone.record_creation("default"), None, "what was there before is not news");
        assert!(gone.record_deletion("default".to_owned()).starts_with("TracePipeline default was deleted: "));
        assert_eq!(gone.record_creation("default").as_deref(), Some("TracePipeline default was created again"));
        assert_eq!(gone.record_creation("default"), None);
    }
}
