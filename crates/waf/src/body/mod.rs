//! Temporary.
#![allow(missing_docs, reason = "temporary")]
pub trait Sink { fn argument(&mut self, _n:&[u8], _v:&[u8]){} fn file(&mut self,_f:&[u8],_n:&[u8],_s:u64){} fn part_header(&mut self,_p:&[u8],_l:&[u8]){} fn xml_text(&mut self,_t:&[u8]){} fn xml_attribute(&mut self,_v:&[u8]){} }
#[derive(Debug,Clone,Copy,Default)] pub struct Limits { pub arguments_max:u32, pub depth_max:u16 }
impl Limits { pub const DEFAULT: Self = Self{arguments_max:1000,depth_max:100}; }
#[derive(Debug,Clone,Copy,Default,PartialEq,Eq)] pub enum Processor { #[default] None, UrlEncoded, Multipart, Json, Xml }
impl Processor { pub fn of(_:&[u8])->Self{Self::UrlEncoded} pub fn name(self)->&'static str{"URLENCODED"} pub fn from_name(_:&str)->Option<Self>{None} }
#[derive(Debug)] pub struct Body; 
pub struct P; impl P { pub fn sentence(&self)->&'static str{""} }
impl Body { pub fn new(_:Processor,_:&[u8],_:u8,_:Limits)->Self{Self} pub fn feed(&mut self,_:&[u8],_:&mut impl Sink){} pub fn finish(&mut self,_:&mut impl Sink){} pub fn problem(&self)->Option<P>{None} pub fn multipart_errors(&self)->Vec<crate::seclang::Variable>{vec![]} pub fn bad_escapes(&self)->u64{0} }
#[derive(Default)] pub struct Query; impl Query { pub fn new()->Self{Self} pub fn read(&mut self,_:&[u8],_:u8,_:&Limits){} pub fn arguments(&self)->std::vec::IntoIter<(&[u8],&[u8])>{vec![].into_iter()} pub fn problem(&self)->Option<P>{None} }
pub fn cookies(_:&[u8])->std::vec::IntoIter<(&[u8],&[u8])>{vec![].into_iter()}
