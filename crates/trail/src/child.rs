//! Creates and applies the children of an object, each in a span, with an owner reference and the trace
//! context.
//!
//! *Guaranteed*:
//! - A child is stamped when it is created and when its desired state changes. Applying the same state again
//!   sends the existing stamp, so the API server stores nothing.
//! - A pod template is never touched: a changed value there would roll out the pods.
//! - No request is made besides the one asked for, except for a child that no watch of
//!   [`Controller::owns`](crate::Controller::owns) shows: its stamp is read once per process.
//!
//! An owner must be in the same namespace as its child, or be cluster-scoped. Otherwise no owner reference is
//! set, because the garbage collector would delete the child at once.

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

use self::stamps::{ChildRef as Key, ResourceKind, StampLookup, StampRecord};
use crate::{
    carrier::{Stamp, hash},
    run::step::RunStep,
    trail::{Trail, TrailState},
};

pub(crate) mod stamps;

/// Creates and applies children of one object.
#[derive(Clone, Copy, Debug)]
pub struct ChildWriter<'a, P> {
    trail: &'a Trail,
    parent: &'a P,
}

impl Trail {
    /// Returns a writer for the children of an object.
    pub fn child<'a, P: Resource>(&'a self, parent: &'a P) -> ChildWriter<'a, P> {
        ChildWriter { trail: self, parent }
    }
}

impl<P> ChildWriter<'_, P>
where
    P: Resource,
    P::DynamicType: Default,
{
    /// Creates a child.
    ///
    /// # Errors
    /// The error of the API server, such as `AlreadyExists`.
    pub async fn create<C>(&self, api: &Api<C>, child: C) -> kube::Result<C>
    where
        C: Resource + Clone + Debug + Serialize + DeserializeOwned,
        C::DynamicType: Default,
    {
        self.create_with(api, &C::DynamicType::default(), &PostParams::default(), child).await
    }

    /// Creates a child of a kind that is only known at run time, with the given parameters.
    ///
    /// # Errors
    /// The error of the API server.
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
        self.set_owner_reference(api, &mut child);
        let Some(shared) = self.trail.shared() else { return api.create(params, &child).await };
        let step = RunStep::start(shared, format!("create {}", C::kind(kind)), SpanKind::Producer, &child, kind);
        if let Some(context) = step.stamp_context() {
            let intent = hash::hash_object(&child).unwrap_or_default();
            write_stamp(shared, &mut child, context, intent, Some(1), None);
        }
        let answer = api.create(params, &child).with_context(step.context.clone()).await;
        if let Ok(created) = &answer {
            shared
                .stamp_cache
                .record(child_ref(api, kind, created), StampRecord::from_meta(created.meta(), &shared.options.keys));
        }
        step.finish(&answer);
        answer
    }

    /// Applies a child by server-side apply with `force`, taking ownership of conflicting fields.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn apply<C>(&self, api: &Api<C>, manager: &str, child: C) -> kube::Result<C>
    where
        C: Resource + Clone + Debug + Serialize + DeserializeOwned,
        C::DynamicType: Default,
    {
        let params = PatchParams::apply(manager).force();
        self.apply_with(api, &C::DynamicType::default(), &params, child).await
    }

    /// Applies a child of a kind that is only known at run time, with the given parameters.
    ///
    /// # Errors
    /// The error of the API server.
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
        self.set_owner_reference(api, &mut child);
        let name = child.name_any();
        let Some(shared) = self.trail.shared() else { return api.patch(&name, params, &Patch::Apply(&child)).await };
        let step = RunStep::start(shared, format!("apply {}", C::kind(kind)), SpanKind::Producer, &child, kind);
        let answer = async {
            let intent = hash::hash_object(&child).unwrap_or_default();
            let known = look_up_child(shared, api, kind, &name, &child).await?;
            if reuse_or_write_stamp(shared, &mut child, step.stamp_context(), &intent, known) {
                step.expect_nothing();
            }
            let applied = api.patch(&name, params, &Patch::Apply(&child)).await?;
            let seen =
                StampRecord { intent: Some(intent), ..StampRecord::from_meta(applied.meta(), &shared.options.keys) };
            shared.stamp_cache.record(child_ref(api, kind, &applied), seen);
            Ok(applied)
        };
        let answer = answer.with_context(step.context.clone()).await;
        step.finish(&answer);
        answer
    }

    /// Sets the parent as owner where the scopes allow it.
    fn set_owner_reference<C: Resource>(&self, api: &Api<C>, child: &mut C) {
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

/// The recorded stamp of a child; requested from the API server where no watch shows the child.
async fn look_up_child<C>(
    trail: &TrailState,
    api: &Api<C>,
    kind: &C::DynamicType,
    name: &str,
    child: &C,
) -> kube::Result<StampLookup>
where
    C: Resource + Clone + Debug + DeserializeOwned,
{
    let known = trail.stamp_cache.get(&child_ref(api, kind, child));
    if known != StampLookup::Unknown {
        return Ok(known);
    }
    Ok(match api.get_metadata_opt(name).await? {
        Some(there) => StampLookup::Present(StampRecord::from_meta(&there.metadata, &trail.options.keys)),
        None => StampLookup::Absent,
    })
}

/// Keeps the existing stamp when the desired state is unchanged, and writes a new one otherwise. Returns
/// true if the desired state is unchanged.
fn reuse_or_write_stamp<C: Resource>(
    trail: &TrailState,
    child: &mut C,
    context: Option<SpanContext>,
    intent: &str,
    known: StampLookup,
) -> bool {
    let (there, generation) = match known {
        StampLookup::Present(there) => {
            let next = there.generation.map(|generation| generation + 1);
            (Some(there), next)
        }
        _ => (None, Some(1)),
    };
    let entries = there.as_ref().map(|there| there.entries.iter().cloned().collect()).unwrap_or_default();
    let found = trail.options.keys.read(Some(&entries)).found;
    let same = there
        .as_ref()
        .and_then(|there| there.intent.as_deref())
        .map_or_else(|| found.as_ref().and_then(|found| found.spec.as_deref()) == Some(intent), |last| last == intent);
    match context {
        // With no context of our own, the existing one is better than none.
        Some(context) if !same => {
            write_stamp(trail, child, context, intent.to_owned(), generation, found.map(|found| found.context));
        }
        _ => child.annotations_mut().extend(entries),
    }
    same
}

fn write_stamp<C: Resource>(
    trail: &TrailState,
    child: &mut C,
    context: SpanContext,
    spec: String,
    generation: Option<i64>,
    previous: Option<SpanContext>,
) {
    let previous = previous.filter(|previous| previous.trace_id() != context.trace_id());
    let changed = trail.options.clock.timestamp();
    let stamp = Stamp { context, spec, generation, stamped_at: changed, previous };
    stamp.write(&trail.options.keys, child.annotations_mut());
}

fn child_ref<C: Resource>(api: &Api<C>, kind: &C::DynamicType, child: &C) -> Key {
    let namespace = child.meta().namespace.clone().or_else(|| api.namespace().map(str::to_owned));
    Key { kind: ResourceKind::from_dynamic_type::<C>(kind), namespace, name: child.name_any() }
}
