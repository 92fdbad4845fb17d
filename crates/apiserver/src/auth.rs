//! Who is asking, and what they may do.
//!
//! Nothing here serves HTTP. A request's parts go in, a [`User`], a [`Decision`] or a [`Status`](crate::api::Status) comes out:
//! - [`authenticate`]: client certificates, static tokens and ServiceAccount tokens become a user; [`impersonation`] another one.
//! - [`authorize`]: the seam for authorizers; [`index`]: RBAC over [`rbac`] rules, fed by change events; [`policy`]: the roles that are
//!   there from the start; [`escalation`]: nobody grants more than they hold.
//! - [`tokens`]: ServiceAccount tokens and the TokenRequest that makes them. [`reviews`]: the access and identity reviews.
//! - [`webhook`]: others who are asked for the one and the other.
//! - [`certs`], [`kubeconfig`]: the server's own CA, certificates, TLS settings and the administrator's kubeconfig.
//!
//! Guaranteed: whoever is in `system:masters` may do everything, whatever the roles say; whoever nobody allows is refused; secrets
//! (tokens, keys) appear in no `Debug` output and no message. Assumed: objects that reach the index have passed validation. Not done:
//! front-proxy headers, OIDC, bootstrap tokens, the Node authorizer, ABAC, and the roles of kube-controller-manager's controllers.

pub mod attributes;
pub mod authenticate;
pub mod authorize;
pub mod certs;
mod der;
pub mod escalation;
pub mod impersonation;
pub mod index;
pub mod kubeconfig;
pub mod objects;
pub mod policy;
pub mod rbac;
pub mod reviews;
pub mod static_tokens;
pub mod token_cache;
pub mod tokens;
pub mod user;
pub mod webhook;
pub mod x509;

pub use self::{
    attributes::Attributes,
    authenticate::{Anonymous, Authentication, Authenticator, Credentials},
    authorize::{Authorizer, Authorizers, Decision, Verdict},
    index::Rbac,
    objects::Objects,
    tokens::ServiceAccountTokens,
    user::User,
};
