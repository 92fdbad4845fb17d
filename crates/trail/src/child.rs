//! Children of an object: created or applied with the owner reference and the context, each in a span.
//!
//! Guaranteed:
//! - A child is stamped when it is made and when what is asked for changes. Applying the same again sends the stamp that is there, and so writes nothing.
//! - A pod template is never touched: a value that changes there would roll out the pods.
//! - No request is made beside the one asked for, but for a child that no [`Controller::owns`](crate::Controller::owns) shows: its stamp is read once in the life of the
//!   process.
//!
//! An owner must live in the namespace of what it owns, or in none. Where it does not, there is no owner reference, as the garbage collector would delete the child at once.

use std::fmt::Debug;

use kube::{
    Api, Resource, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use opentelemetry::{
    context::FutureExt as _,
    trace::{SpanContext, SpanKind},
};
use serde::{Serialize, de::DeserializeOwned};

use self::stamps::{Child as Key, Kind, Known, Stamped};
use crate::{
    carrier::{Stamp, hash},
    step::Step,
    trail::{Shared, Trail},
};

pub(crate) mod stamps;

/// Makes children of one object.
#[derive(Clone, Copy, Debug)]
pub struct Children<'a, P> {
    trail: &'a Trail,
    parent: &'a P,
}

impl Trail {
    /// Makes children of an object.
    pub fn child<'a, P: Resource>(&'a self, parent: &'a P) -> Children<'a, P> {
        Children { trail: self, parent }
    }
}

impl<P> Children<'_, P>
where
    P: Resource,
    P::DynamicType: Default,
{
    /// Creates a child.
    ///
    /// # Errors
    /// What the API server answers, such as that there is one already.
    pub async fn create<C>(&self, api: &Api<C>, child: C) -> kube::Result<C>
    where
        C: Resource + Clone + Debug + Serialize + DeserializeOwned,
        C::DynamicType: Default,
    {
        self.create_with(api, &C::DynamicType::default(), &PostParams::default(), child).await
    }

    /// The same for a kind that is only known at run time, and with parameters.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn create_with<C>(
        &self,
        api: &Api<C>,
        kind: &C::DynamicType,
        params: &PostParams,
        mut child: C,
    ) -> kube::Result<C>
    where
        C: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        self.own(api, &mut child);
        let Some(shared) = self.trail.shared() else { return api.create(params, &child).await };
        let step = Step::start(shared, format!("create {}", C::kind(kind)), SpanKind::Producer, &child, kind);
        if let Some(context) = step.stamp() {
            let intent = hash::of(&child).unwrap_or_default();
            shared.stamp(&mut child, context, intent, Some(1), None);
        }
        let answer = api.create(params, &child).with_context(step.context.clone()).await;
        if let Ok(created) = &answer {
            shared.stamps.saw(key(api, kind, created), Stamped::of(created.meta(), &shared.options.keys));
        }
        step.finish(&answer);
        answer
    }

    /// Applies a child by server-side apply, taking over what others own in it.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn apply<C>(&self, api: &Api<C>, manager: &str, child: C) -> kube::Result<C>
    where
        C: Resource + Clone + Debug + Serialize + DeserializeOwned,
        C::DynamicType: Default,
    {
        let params = PatchParams::apply(manager).force();
        self.apply_with(api, &C::DynamicType::default(), &params, child).await
    }

    /// The same for a kind that is only known at run time, and with parameters.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn apply_with<C>(
        &self,
        api: &Api<C>,
        kind: &C::DynamicType,
        params: &PatchParams,
        mut child: C,
    ) -> kube::Result<C>
    where
        C: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        self.own(api, &mut child);
        let name = child.name_any();
        let Some(shared) = self.trail.shared() else { return api.patch(&name, params, &Patch::Apply(&child)).await };
        let step = Step::start(shared, format!("apply {}", C::kind(kind)), SpanKind::Producer, &child, kind);
        let answer = async {
            let intent = hash::of(&child).unwrap_or_default();
            let known = shared.known_child(api, kind, &name, &child).await?;
            if shared.stamp_again(&mut child, step.stamp(), &intent, known) {
                step.expect_nothing();
            }
            let applied = api.patch(&name, params, &Patch::Apply(&child)).await?;
            let seen = Stamped { intent: Some(intent), ..Stamped::of(applied.meta(), &shared.options.keys) };
            shared.stamps.saw(key(api, kind, &applied), seen);
            Ok(applied)
        };
        let answer = answer.with_context(step.context.clone()).await;
        step.finish(&answer);
        answer
    }

    /// Makes the parent the owner, where that is possible.
    fn own<C: Resource>(&self, api: &Api<C>, child: &mut C) {
        let parent = self.parent.meta();
        let namespace = child.meta().namespace.clone().or_else(|| api.namespace().map(str::to_owned));
        if parent.namespace.is_some() && parent.namespace != namespace {
            return;
        }
        let Some(owner) = self.parent.controller_owner_ref(&P::DynamicType::default()) else { return };
        let owners = child.meta_mut().owner_references.get_or_insert_default();
        if !owners.iter().any(|known| known.uid == owner.uid) {
            owners.push(owner);
        }
    }
}

impl Shared {
    /// What is known of a child; asked for where no watch shows it.
    async fn known_child<C>(&self, api: &Api<C>, kind: &C::DynamicType, name: &str, child: &C) -> kube::Result<Known>
    where
        C: Resource + Clone + Debug + DeserializeOwned,
    {
        let known = self.stamps.get(&key(api, kind, child));
        if known != Known::Unknown {
            return Ok(known);
        }
        Ok(match api.get_metadata_opt(name).await? {
            Some(there) => Known::There(Stamped::of(&there.metadata, &self.options.keys)),
            None => Known::Absent,
        })
    }

    /// Leaves the stamp that is there when the same is asked for again, and a new one otherwise. Says whether it is the same.
    fn stamp_again<C: Resource>(
        &self,
        child: &mut C,
        context: Option<SpanContext>,
        intent: &str,
        known: Known,
    ) -> bool {
        let (there, generation) = match known {
            Known::There(there) => {
                let next = there.generation.map(|generation| generation + 1);
                (Some(there), next)
            }
            _ => (None, Some(1)),
        };
        let entries = there.as_ref().map(|there| there.entries.iter().cloned().collect()).unwrap_or_default();
        let found = self.options.keys.read(Some(&entries)).found;
        let same = there.as_ref().and_then(|there| there.intent.as_deref()).map_or_else(
            || found.as_ref().and_then(|found| found.spec.as_deref()) == Some(intent),
            |last| last == intent,
        );
        match context {
            // Without a context of our own, what is there is better than nothing.
            Some(context) if !same => {
                self.stamp(child, context, intent.to_owned(), generation, found.map(|found| found.context));
            }
            _ => child.annotations_mut().extend(entries),
        }
        same
    }

    fn stamp<C: Resource>(
        &self,
        child: &mut C,
        context: SpanContext,
        spec: String,
        generation: Option<i64>,
        previous: Option<SpanContext>,
    ) {
        let previous = previous.filter(|previous| previous.trace_id() != context.trace_id());
        let changed = self.options.clock.timestamp();
        let stamp = Stamp { context, spec, generation, changed, previous };
        stamp.write(&self.options.keys, child.annotations_mut());
    }
}

fn key<C: Resource>(api: &Api<C>, kind: &C::DynamicType, child: &C) -> Key {
    let namespace = child.meta().namespace.clone().or_else(|| api.namespace().map(str::to_owned));
    Key { kind: Kind::of::<C>(kind), namespace, name: child.name_any() }
}
