//! `request_id:` of a virtual server.

use crate::shapes::FieldName;

section! {
    /// What tells a request from all others, for members, clients and logs.
    RequestId at "virtual_servers.NAME.request_id" {
        /// The field that members get it in. What `client_address.trust` sends in it is the request's id, if it is there once and has at most 128 letters, digits and `- . _ ~ : / + = @`. What others send is replaced.
        default header: FieldName = FieldName("X-Request-Id".into());
        /// Whether clients get it, in the same field of each response.
        default respond: bool = true;
    }
    later []
}
