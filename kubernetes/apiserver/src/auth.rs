//! Authentication, authorization and the certificates of the server.
//!
//! Nothing here serves HTTP. Functions take the parts of a request and return a [`UserInfo`], an
//! [`AuthorizationDecision`] or a [`StatusError`](crate::api::StatusError):
//! - [`authenticate`]: client certificates, static tokens and ServiceAccount tokens become a user;
//!   [`impersonation`] replaces that user by another one.
//! - [`authorize`]: the trait of authorizers; [`rbac_index`]: RBAC over [`rbac`] rules, fed by change events;
//!   [`bootstrap_policy`]: the default roles and bindings; [`escalation`]: writers of roles cannot grant more
//!   than they hold.
//! - [`tokens`]: ServiceAccount tokens and the TokenRequest that issues them. [`reviews`]: the access and
//!   identity reviews.
//! - [`webhook`]: authentication and authorization by webhook.
//! - [`certs`], [`kubeconfig`]: the server's own CA, certificates, TLS settings and the administrator's
//!   kubeconfig.
//!
//! Guaranteed: members of `system:masters` may do everything, whatever the roles say; a request that no
//! authorizer allows is refused; secrets (tokens, keys) appear in no `Debug` output and no message. Assumed:
//! objects that reach the index have passed validation. Not done: front-proxy headers, OIDC, bootstrap tokens,
//! the Node authorizer and ABAC.

pub mod attributes;
pub mod authenticate;
pub mod authorize;
pub mod bootstrap_policy;
pub mod certs;
mod der;
pub mod escalation;
pub mod impersonation;
pub mod kubeconfig;
pub mod object_getter;
pub mod rbac;
pub mod rbac_index;
pub mod reviews;
pub mod static_tokens;
pub mod token_cache;
pub mod tokens;
pub mod user;
pub mod webhook;
pub mod x509;

pub use self::{
    attributes::AuthorizationAttributes,
    authenticate::{AnonymousAccess, RequestCredentials, TokenAuthenticator, UnionAuthenticator},
    authorize::{AuthorizationDecision, Authorizer, DecisionKind, UnionAuthorizer},
    object_getter::ObjectGetter,
    rbac_index::RbacAuthorizer,
    tokens::ServiceAccountTokens,
    user::UserInfo,
};
