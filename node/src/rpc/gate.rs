//! What stands before JSON-RPC: which hosts a request may name, which web pages may ask, and geth's wording for methods
//! that do not exist.
//!
//! A browser sends requests of any page to a node on the same machine. Two checks stop that: the `Host` header must be an
//! IP address, `localhost` or a listed name (against DNS rebinding), and a request that names an `Origin` is answered with
//! CORS headers, and allowed a WebSocket, only if the list has it.

use super::methods::METHODS;
use hyper::{
    Method, StatusCode,
    header::{self, HeaderMap, HeaderValue},
    http::response::Builder,
};
use jsonrpsee::{
    core::middleware::{Batch, BatchEntry, BatchEntryErr, Notification},
    server::{HttpBody, HttpRequest, HttpResponse, MethodResponse, middleware::rpc::RpcServiceT},
    types::{ErrorObjectOwned, Request},
};
use std::{
    collections::BTreeSet,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tower::{Layer, Service};

/// Who may ask.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    lists: Arc<Lists>,
    request_timeout: Duration,
}

#[derive(Debug)]
struct Lists {
    hosts: BTreeSet<String>,
    origins: BTreeSet<String>,
}

impl Gate {
    /// `*` in a list allows all.
    pub(crate) fn new(hosts: &[String], origins: &[String], request_timeout: Duration) -> Self {
        let lists = Lists {
            hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            origins: origins
                .iter()
                .map(|origin| origin.to_ascii_lowercase())
                .collect(),
        };
        Self {
            lists: Arc::new(lists),
            request_timeout,
        }
    }
}

impl Lists {
    fn host_allowed(&self, headers: &HeaderMap) -> bool {
        let Some(host) = headers.get(header::HOST) else {
            return true;
        };
        let Ok(host) = host.to_str() else {
            return false;
        };
        let name = without_port(host).to_ascii_lowercase();
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost"
            || address.parse::<IpAddr>().is_ok()
            || self.hosts.contains("*")
            || self.hosts.contains(&name)
    }

    fn origin_allowed(&self, origin: &HeaderValue) -> bool {
        let listed = |origin: &str| self.origins.contains(&origin.to_ascii_lowercase());
        self.origins.contains("*") || origin.to_str().is_ok_and(listed)
    }
}

fn without_port(host: &str) -> &str {
    if let Some(end) = host.rfind(']') {
        return &host[..=end];
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated {
            inner,
            lists: Arc::clone(&self.lists),
            request_timeout: self.request_timeout,
        }
    }
}

/// The service behind the gate.
#[derive(Debug, Clone)]
pub(crate) struct Gated<S> {
    inner: S,
    lists: Arc<Lists>,
    request_timeout: Duration,
}

impl<S, B> Service<HttpRequest<B>> for Gated<S>
where
    S: Service<HttpRequest<B>, Response = HttpResponse>,
    S::Future: Send + 'static,
    S::Error: 'static,
{
    type Response = HttpResponse;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: HttpRequest<B>) -> Self::Future {
        if !self.lists.host_allowed(request.headers()) {
            return refuse("invalid host specified: add it to the RPC's allowed hosts\n");
        }
        let origin = request.headers().get(header::ORIGIN).cloned();
        let allowed = origin.filter(|origin| self.lists.origin_allowed(origin));
        let from_page = request.headers().contains_key(header::ORIGIN);
        if request.headers().contains_key(header::UPGRADE) && from_page && allowed.is_none() {
            return refuse("origin not allowed: add it to the RPC's CORS list\n");
        }
        if from_page && request.method() == Method::OPTIONS {
            let mut response = plain(StatusCode::NO_CONTENT, "");
            allow(response.headers_mut(), allowed);
            return Box::pin(async move { Ok(response) });
        }
        // A body that trickles in ends here too.
        let answer = tokio::time::timeout(self.request_timeout, self.inner.call(request));
        Box::pin(async move {
            let mut response = match answer.await {
                Ok(answered) => answered?,
                Err(_) => plain(StatusCode::REQUEST_TIMEOUT, "the request took too long\n"),
            };
            allow(response.headers_mut(), allowed);
            Ok(response)
        })
    }
}

/// CORS headers for a listed page.
fn allow(headers: &mut HeaderMap, origin: Option<HeaderValue>) {
    let Some(origin) = origin else { return };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("POST"),
    );
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("content-type"),
    );
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static("600"),
    );
}

fn plain(status: StatusCode, text: &'static str) -> HttpResponse {
    Builder::new()
        .status(status)
        .header(header::CONTENT_TYPE, "text/plain; charset=utf-8")
        .body(HttpBody::from(text))
        .expect("a status and a static header make a response")
}

fn refuse<E: 'static>(
    text: &'static str,
) -> Pin<Box<dyn Future<Output = Result<HttpResponse, E>> + Send>> {
    Box::pin(async move { Ok(plain(StatusCode::FORBIDDEN, text)) })
}

pub(crate) const SUBSCRIBE: &str = "eth_subscribe";
pub(crate) const UNSUBSCRIBE: &str = "eth_unsubscribe";

/// Longest method name repeated in an error.
const NAME_SHOWN_MAX: usize = 64;

fn missing_method(name: &str) -> Option<ErrorObjectOwned> {
    if name == SUBSCRIBE || name == UNSUBSCRIBE || METHODS.iter().any(|method| method.name == name)
    {
        return None;
    }
    let shown: String = name.chars().take(NAME_SHOWN_MAX).collect();
    Some(ErrorObjectOwned::owned(
        -32601,
        format!("the method {shown} does not exist/is not available"),
        None::<()>,
    ))
}

/// Says what is wrong with a method name as geth says it.
#[derive(Debug, Clone)]
pub(crate) struct Wording<S>(pub(crate) S);

impl<S> RpcServiceT for Wording<S>
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            BatchResponse = MethodResponse,
            NotificationResponse = MethodResponse,
        > + Clone
        + Send
        + Sync
        + 'static,
{
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let inner = self.0.clone();
        async move {
            if let Some(error) = missing_method(request.method_name()) {
                return MethodResponse::error(request.id, error);
            }
            let over_http =
                ErrorObjectOwned::owned(-32601, "notifications not supported", None::<()>);
            let subscribes =
                request.method_name() == SUBSCRIBE || request.method_name() == UNSUBSCRIBE;
            let id = request.id.clone();
            let response = inner.call(request).await;
            // The server knows no subscriptions over plain HTTP and calls that an internal error.
            if subscribes && response.as_error_code() == Some(-32603) {
                return MethodResponse::error(id, over_http);
            }
            response
        }
    }

    fn batch<'a>(&self, mut batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        for entry in batch.iter_mut() {
            if let Ok(BatchEntry::Call(request)) = entry
                && let Some(error) = missing_method(request.method_name())
            {
                *entry = Err(BatchEntryErr::new(request.id.clone(), error));
            }
        }
        self.0.batch(batch)
    }

    fn notification<'a>(
        &self,
        notification: Notification<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.0.notification(notification)
    }
}
