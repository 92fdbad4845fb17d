//! Tells when the way of spans is gone: a TracePipeline that somebody deleted, and that it is there again.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, TryStreamExt as _};
use kube::{
    Api, Client, ResourceExt as _,
    runtime::{WatchStreamExt as _, watcher},
};
use kubewake_api::v1alpha1::TracePipeline;

/// The pipelines that are gone. People delete few.
#[derive(Debug, Default)]
struct Gone(BTreeSet<String>);

/// Whoever makes more is no person.
const MOST: usize = 100;

/// Watches for ever, and says what came and went.
pub(super) async fn tell(client: Client, say: impl Fn(&str)) {
    let mut gone = Gone::default();
    let pipelines: Api<TracePipeline> = Api::all(client);
    let mut events = watcher(pipelines, watcher::Config::default()).default_backoff().into_stream().boxed();
    loop {
        let news = match events.try_next().await {
            Ok(Some(watcher::Event::Apply(it) | watcher::Event::InitApply(it))) => gone.is_there(&it.name_any()),
            Ok(Some(watcher::Event::Delete(it))) => Some(gone.left(it.name_any())),
            // It is asked again.
            Ok(Some(watcher::Event::Init | watcher::Event::InitDone)) | Err(_) => None,
            Ok(None) => return,
        };
        if let Some(news) = news {
            say(&news);
        }
    }
}

impl Gone {
    fn left(&mut self, name: String) -> String {
        let news =
            format!("TracePipeline {name} is gone: what went through it is not recorded until it is there again");
        if self.0.len() < MOST {
            self.0.insert(name);
        }
        news
    }

    fn is_there(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).then(|| format!("TracePipeline {name} is there again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_and_comes_is_told_once() {
        let mut gone = Gone::default();
        assert_eq!(gone.is_there("default"), None, "what was there before is not news");
        assert!(gone.left("default".to_owned()).starts_with("TracePipeline default is gone: "));
        assert_eq!(gone.is_there("default").as_deref(), Some("TracePipeline default is there again"));
        assert_eq!(gone.is_there("default"), None);
    }
}
