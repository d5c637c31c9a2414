import{t as e}from"./rolldown-runtime-DK3Fl9T5.js";import{$ as t,At as n,Bt as r,Ct as i,D as a,Dt as o,Et as s,G as c,Gn as l,H as u,Hn as d,Ht as f,Jn as p,Kn as m,Lt as h,M as g,Mn as _,Mt as v,N as ee,Nt as te,O as ne,Ot as re,Pt as ie,Q as ae,R as y,Rt as oe,Tt as b,U as se,V as ce,Vt as le,W as ue,Wn as de,X as fe,Xn as pe,Z as x,Zn as me,at as he,bt as S,ct as ge,dr as _e,et as ve,fr as C,ft as ye,g as be,gt as xe,h as w,ht as Se,it as Ce,jt as we,kt as Te,l as T,lt as Ee,m as De,mr as Oe,nr as ke,nt as Ae,o as je,ot as E,pr as D,pt as O,r as Me,rt as Ne,s as k,st as Pe,u as Fe,ut as A,vr as Ie,vt as j,yt as M,zn as N,zt as Le}from"./three.core-Hww5_iH6.js";import{a as Re,c as ze,o as Be,s as Ve}from"./index-De7-Zgar.js";import{n as P,r as F}from"./three.module-Cpghm_PI.js";function He(e,t){if(t===0)return console.warn(`THREE.BufferGeometryUtils.toTrianglesDrawMode(): Geometry already defined as triangles.`),e;if(t===2||t===1){let n=e.getIndex();if(n===null){let t=[],r=e.getAttribute(`position`);if(r!==void 0){for(let e=0;e<r.count;e++)t.push(e);e.setIndex(t),n=e.getIndex()}else return console.error(`THREE.BufferGeometryUtils.toTrianglesDrawMode(): Undefined position attribute. Processing not possible.`),e}let r=n.count-2,i=[];if(t===2)for(let e=1;e<=r;e++)i.push(n.getX(0)),i.push(n.getX(e)),i.push(n.getX(e+1));else for(let e=0;e<r;e++)e%2==0?(i.push(n.getX(e)),i.push(n.getX(e+1)),i.push(n.getX(e+2))):(i.push(n.getX(e+2)),i.push(n.getX(e+1)),i.push(n.getX(e)));return i.length/3!==r&&console.error(`THREE.BufferGeometryUtils.toTrianglesDrawMode(): Unable to generate correct amount of triangles.`),e.setIndex(i),e.clearGroups(),e}return console.error(`THREE.BufferGeometryUtils.toTrianglesDrawMode(): Unknown draw mode:`,t),e}function Ue(e){let t=new Map,n=new Map,r=e.clone();return We(e,r,function(e,r){t.set(r,e),n.set(e,r)}),r.traverse(function(e){if(!e.isSkinnedMesh)return;let r=e,i=t.get(e),a=i.skeleton.bones;r.skeleton=i.skeleton.clone(),r.bindMatrix.copy(i.bindMatrix),r.skeleton.bones=a.map(function(e){return n.get(e)}),r.bind(r.skeleton,r.bindMatrix)}),r}function We(e,t,n){n(e,t);for(let r=0;r<e.children.length;r++)We(e.children[r],t.children[r],n)}var Ge=class extends ye{constructor(e){super(e),this.dracoLoader=null,this.ktx2Loader=null,this.meshoptDecoder=null,this.pluginCallbacks=[],this.register(function(e){return new Xe(e)}),this.register(function(e){return new Ze(e)}),this.register(function(e){return new Qe(e)}),this.register(function(e){return new st(e)}),this.register(function(e){return new ct(e)}),this.register(function(e){return new lt(e)}),this.register(function(e){return new et(e)}),this.register(function(e){return new tt(e)}),this.register(function(e){return new nt(e)}),this.register(function(e){return new rt(e)}),this.register(function(e){return new Ye(e)}),this.register(function(e){return new it(e)}),this.register(function(e){return new $e(e)}),this.register(function(e){return new ot(e)}),this.register(function(e){return new at(e)}),this.register(function(e){return new qe(e)}),this.register(function(e){return new ut(e,L.EXT_MESHOPT_COMPRESSION)}),this.register(function(e){return new ut(e,L.KHR_MESHOPT_COMPRESSION)}),this.register(function(e){return new dt(e)})}load(e,t,n,r){let i=this,a;if(this.resourcePath!==``)a=this.resourcePath;else if(this.path!==``){let t=O.extractUrlBase(e);a=O.resolveURL(t,this.path)}else a=O.extractUrlBase(e);this.manager.itemStart(e);let o=function(t){r?r(t):console.error(t),i.manager.itemError(e),i.manager.itemEnd(e)},s=new g(this.manager);s.setPriority(this.priority),s.setCache(this.cache),s.setPath(this.path),s.setResponseType(`arraybuffer`),s.setRequestHeader(this.requestHeader),s.setWithCredentials(this.withCredentials),s.load(e,function(n){try{i.parse(n,a,function(n){t(n),i.manager.itemEnd(e)},o)}catch(e){o(e)}},n,o)}setDRACOLoader(e){return this.dracoLoader=e,this}setKTX2Loader(e){return this.ktx2Loader=e,this}setMeshoptDecoder(e){return this.meshoptDecoder=e,this}register(e){return this.pluginCallbacks.indexOf(e)===-1&&this.pluginCallbacks.push(e),this}unregister(e){return this.pluginCallbacks.indexOf(e)!==-1&&this.pluginCallbacks.splice(this.pluginCallbacks.indexOf(e),1),this}parse(e,t,n,r){let i,a={},o={},s=new TextDecoder;if(typeof e==`string`)i=JSON.parse(e);else if(e instanceof ArrayBuffer){if(s.decode(new Uint8Array(e,0,4))===ft){try{a[L.KHR_BINARY_GLTF]=new mt(e)}catch(e){r&&r(e);return}i=JSON.parse(a[L.KHR_BINARY_GLTF].content)}else i=JSON.parse(s.decode(e))}else i=e;if(i.asset===void 0||i.asset.version[0]<2){r&&r(Error(`THREE.GLTFLoader: Unsupported asset. glTF versions >=2.0 are supported.`));return}let c=new Ft(i,{path:t||this.resourcePath||``,crossOrigin:this.crossOrigin,priority:this.priority,cache:this.cache,withCredentials:this.withCredentials,requestHeader:this.requestHeader,manager:this.manager,ktx2Loader:this.ktx2Loader,meshoptDecoder:this.meshoptDecoder});c.fileLoader.setRequestHeader(this.requestHeader);for(let e=0;e<this.pluginCallbacks.length;e++){let t=this.pluginCallbacks[e](c);t.name||console.error(`THREE.GLTFLoader: Invalid plugin found: missing name`),o[t.name]=t,a[t.name]=!0}if(i.extensionsUsed)for(let e=0;e<i.extensionsUsed.length;++e){let t=i.extensionsUsed[e],n=i.extensionsRequired||[];switch(t){case L.KHR_MATERIALS_UNLIT:a[t]=new Je;break;case L.KHR_DRACO_MESH_COMPRESSION:a[t]=new ht(i,this.dracoLoader);break;case L.KHR_TEXTURE_TRANSFORM:a[t]=new gt;break;case L.KHR_MESH_QUANTIZATION:a[t]=new _t;break;default:n.indexOf(t)>=0&&o[t]===void 0&&console.warn(`THREE.GLTFLoader: Unknown extension "`+t+`".`)}}c.setExtensions(a),c.setPlugins(o),c.parse(n,r)}parseAsync(e,t){let n=this;return new Promise(function(r,i){n.parse(e,t,r,i)})}};function Ke(){let e={};return{get:function(t){return e[t]},add:function(t,n){e[t]=n},remove:function(t){delete e[t]},removeAll:function(){e={}}}}function I(e,t,n){let r=e.json.materials[t];return r.extensions&&r.extensions[n]?r.extensions[n]:null}var L={KHR_BINARY_GLTF:`KHR_binary_glTF`,KHR_DRACO_MESH_COMPRESSION:`KHR_draco_mesh_compression`,KHR_LIGHTS_PUNCTUAL:`KHR_lights_punctual`,KHR_MATERIALS_CLEARCOAT:`KHR_materials_clearcoat`,KHR_MATERIALS_DIFFUSE_ROUGHNESS:`KHR_materials_diffuse_roughness`,KHR_MATERIALS_DISPERSION:`KHR_materials_dispersion`,KHR_MATERIALS_IOR:`KHR_materials_ior`,KHR_MATERIALS_SHEEN:`KHR_materials_sheen`,KHR_MATERIALS_SPECULAR:`KHR_materials_specular`,KHR_MATERIALS_TRANSMISSION:`KHR_materials_transmission`,KHR_MATERIALS_IRIDESCENCE:`KHR_materials_iridescence`,KHR_MATERIALS_ANISOTROPY:`KHR_materials_anisotropy`,KHR_MATERIALS_UNLIT:`KHR_materials_unlit`,KHR_MATERIALS_VOLUME:`KHR_materials_volume`,KHR_TEXTURE_BASISU:`KHR_texture_basisu`,KHR_TEXTURE_TRANSFORM:`KHR_texture_transform`,KHR_MESH_QUANTIZATION:`KHR_mesh_quantization`,KHR_MATERIALS_EMISSIVE_STRENGTH:`KHR_materials_emissive_strength`,EXT_MATERIALS_BUMP:`EXT_materials_bump`,EXT_TEXTURE_WEBP:`EXT_texture_webp`,EXT_TEXTURE_AVIF:`EXT_texture_avif`,EXT_MESHOPT_COMPRESSION:`EXT_meshopt_compression`,KHR_MESHOPT_COMPRESSION:`KHR_meshopt_compression`,EXT_MESH_GPU_INSTANCING:`EXT_mesh_gpu_instancing`},qe=class{constructor(e){this.parser=e,this.name=L.KHR_LIGHTS_PUNCTUAL,this.cache={refs:{},uses:{}}}_markDefs(){let e=this.parser,t=this.parser.json.nodes||[];for(let n=0,r=t.length;n<r;n++){let r=t[n];r.extensions&&r.extensions[this.name]&&r.extensions[this.name].light!==void 0&&e._addNodeRef(this.cache,r.extensions[this.name].light)}}_loadLight(e){let t=this.parser,n=`light:`+e,r=t.cache.get(n);if(r)return r;let i=t.json,o=((i.extensions&&i.extensions[this.name]||{}).lights||[])[e],s,c=new w(16777215);o.color!==void 0&&c.setRGB(o.color[0],o.color[1],o.color[2],A);let l=o.range===void 0?0:o.range;switch(o.type){case`directional`:s=new a(c),s.target.position.set(0,0,-1),s.add(s.target);break;case`point`:s=new h(c),s.distance=l;break;case`spot`:s=new p(c),s.distance=l,o.spot=o.spot||{},o.spot.innerConeAngle=o.spot.innerConeAngle===void 0?0:o.spot.innerConeAngle,o.spot.outerConeAngle=o.spot.outerConeAngle===void 0?Math.PI/4:o.spot.outerConeAngle,s.angle=o.spot.outerConeAngle,s.penumbra=1-o.spot.innerConeAngle/o.spot.outerConeAngle,s.target.position.set(0,0,-1),s.add(s.target);break;default:throw Error(`THREE.GLTFLoader: Unexpected light type: `+o.type)}return s.position.set(0,0,0),U(s,o),o.intensity!==void 0&&(s.intensity=o.intensity),s.name=t.createUniqueName(o.name||`light_`+e),r=Promise.resolve(s),t.cache.add(n,r),r}getDependency(e,t){if(e===`light`)return this._loadLight(t)}createNodeAttachment(e){let t=this,n=this.parser,r=n.json.nodes[e],i=(r.extensions&&r.extensions[this.name]||{}).light;return i===void 0?null:this._loadLight(i).then(function(e){return n._getNodeRef(t.cache,i,e)})}},Je=class{constructor(){this.name=L.KHR_MATERIALS_UNLIT}getMaterialType(){return S}extendParams(e,t,n){let r=[];e.color=new w(1,1,1),e.opacity=1;let i=t.pbrMetallicRoughness;if(i){if(Array.isArray(i.baseColorFactor)){let t=i.baseColorFactor;e.color.setRGB(t[0],t[1],t[2],A),e.opacity=t[3]}i.baseColorTexture!==void 0&&r.push(n.assignTexture(e,`map`,i.baseColorTexture,N))}return Promise.all(r)}},Ye=class{constructor(e){this.parser=e,this.name=L.KHR_MATERIALS_EMISSIVE_STRENGTH}extendMaterialParams(e,t){let n=I(this.parser,e,this.name);return n===null||n.emissiveStrength!==void 0&&(t.emissiveIntensity=n.emissiveStrength),Promise.resolve()}},Xe=class{constructor(e){this.parser=e,this.name=L.KHR_MATERIALS_CLEARCOAT}getMaterialType(e){return I(this.parser,e,this.name)===null?null:b}extendMaterialParams(e,t){let n=I(this.parser,e,this.name);if(n===null)return Promise.resolve();let r=[];if(n.clearcoatFactor!==void 0&&(t.clearcoat=n.clearcoatFactor),n.clearcoatTexture!==void 0&&r.push(this.parser.assignTexture(t,`clearcoatMap`,n.clearcoatTexture)),n.clearcoatRoughnessFactor!==void 0&&(t.clearcoatRoughness=n.clearcoatRoughnessFactor),n.clearcoatRoughnessTexture!==void 0&&r.push(this.parser.assignTexture(t,`clearcoatRoughnessMap`,n.clearcoatRoughnessTexture)),n.clearcoatNormalTexture!==void 0&&(r.push(this.parser.assignTexture(t,`clearcoatNormalMap`,n.clearcoatNormalTexture)),n.clearcoatNormalTexture.scale!==void 0)){let e=n.clearcoatNormalTexture.scale;t.clearcoatNormalScale=new _e(e,e)}return Promise.all(r)}},Ze=class{constructor(e){this.parser=e,this.name=L.KHR_MATERIALS_DIFFUSE_ROUGHNESS}getMaterialType(e){return I(this.parser,e,this.name)===null?null:b}extendMaterialParams(e,t){let n=I(this.parser,e,this.name);if(n===null)return Promise.resolve();let r=[];return t.diffuseRoughness=n.diffuseRoughnessFactor===void 0?0:n.diffuseRoughnessFactor,n.diffuseRoughnessTexture!==void 0&&r.push(this.parser.assignTexture(t,`diffuseRoughnessMap`,n.diffuseRoughnessTexture)),Promise.all(r)}},Qe=class{constructor(e){this.parser=e,this.name=L.KHR_MATERIALS_DISPERSION}getMaterialType(e){return I(this.parser,e,this.name)===null?null:b}extendMaterialParams(e,t){let n=I(this.parser,e,this.name);return n===null||(t.dispersion=n.dispersion===void 0?0:n.dispersion),Promise.resolve()}},$e=class{constructor(e){this.parser=e,this.name=L.KHR_MATERIALS_IRIDESCENCE}getMaterialType(e){return I(this.parser,e,this.name)===null?null:b}extendMaterialParams(e,t){let n=I(this.parser,e,this.name);if(n===null)return Promise.resolve();let r=[];return n.iridescenceFactor!==void 0&&(t.iridescence=n.iridescenceFactor),n.iridescenceTexture!==void 0&&r.push(this.parser.assignTexture(t,`iridescenceMap`,n.iridescenceTexture)),n.iridescenceIor!==void 0&&(t.iridescenceIOR=n.iridescenceIor),n.iridescenceThicknessMinimum!==void 0&&(t.iridescenceThicknessMinimum=n.iridescenceThicknessMinimum),n.iridescenceThicknessMaximum!==void 0&&(t.iridescenceThicknessMaximum=n.iridescenceThicknessMaximum),n.iridescenceThicknessTexture!==void 0&&r.push(this.parser.assignTexture(t,`iridescenceThicknessMap`,n.iridescenceThicknessTexture)),Promise.all(r)}},et=class{constructor(e){this.parser=e,this.name=L.KHR_MATERIALS_SHEEN}getMaterialType(e){return I(this.parser,e,this.name)===null?null:b}extendMaterialParams(e,t){let n=I(this.parser,e,this.name);if(n===null)return Promise.resolve();let r=[];if(t.sheenColor=new w(0,0,0),t.sheenRoughness=0,t.sheen=1,n.sheenColorFactor!==void 0){let e=n.sheenColorFactor;t.sheenColor.setRGB(e[0],e[1],e[2],A)}return n.sheenRoughnessFactor!==void 0&&(t.sheenRoughness=n.sheenRoughnessFactor),n.sheenColorTexture!==void 0&&r.push(this.parser.assignTexture(t,`sheenColorMap`,n.sheenColorTexture,N)),n.sheenRoughnessTexture!==void 0&&r.push(this.parser.assignTexture(t,`sheenRoughnessMap`,n.sheenRoughnessTexture)),Promise.all(r)}},tt=class{constructor(e){this.parser=e,this.name=L.KHR_MATERIALS_TRANSMISSION}getMaterialType(e){return I(this.parser,e,this.name)===null?null:b}extendMaterialParams(e,t){let n=I(this.parser,e,this.name);if(n===null)return Promise.resolve();let r=[];return n.transmissionFactor!==void 0&&(t.transmission=n.transmissionFactor),n.transmissionTexture!==void 0&&r.push(this.parser.assignTexture(t,`transmissionMap`,n.transmissionTexture)),Promise.all(r)}},nt=class{constructor(e){this.parser=e,this.name=L.KHR_MATERIALS_VOLUME}getMaterialType(e){return I(this.parser,e,this.name)===null?null:b}extendMaterialParams(e,t){let n=I(this.parser,e,this.name);if(n===null)return Promise.resolve();let r=[];t.thickness=n.thicknessFactor===void 0?0:n.thicknessFactor,n.thicknessTexture!==void 0&&r.push(this.parser.assignTexture(t,`thicknessMap`,n.thicknessTexture)),t.attenuationDistance=n.attenuationDistance||1/0;let i=n.attenuationColor||[1,1,1];return t.attenuationColor=new w().setRGB(i[0],i[1],i[2],A),Promise.all(r)}},rt=class{constructor(e){this.parser=e,this.name=L.KHR_MATERIALS_IOR}getMaterialType(e){return I(this.parser,e,this.name)===null?null:b}extendMaterialParams(e,t){let n=I(this.parser,e,this.name);return n===null||(t.ior=n.ior===void 0?1.5:n.ior,t.ior===0&&(t.ior=1e3)),Promise.resolve()}},it=class{constructor(e){this.parser=e,this.name=L.KHR_MATERIALS_SPECULAR}getMaterialType(e){return I(this.parser,e,this.name)===null?null:b}extendMaterialParams(e,t){let n=I(this.parser,e,this.name);if(n===null)return Promise.resolve();let r=[];t.specularIntensity=n.specularFactor===void 0?1:n.specularFactor,n.specularTexture!==void 0&&r.push(this.parser.assignTexture(t,`specularIntensityMap`,n.specularTexture));let i=n.specularColorFactor||[1,1,1];return t.specularColor=new w().setRGB(i[0],i[1],i[2],A),n.specularColorTexture!==void 0&&r.push(this.parser.assignTexture(t,`specularColorMap`,n.specularColorTexture,N)),Promise.all(r)}},at=class{constructor(e){this.parser=e,this.name=L.EXT_MATERIALS_BUMP}getMaterialType(e){return I(this.parser,e,this.name)===null?null:b}extendMaterialParams(e,t){let n=I(this.parser,e,this.name);if(n===null)return Promise.resolve();let r=[];return t.bumpScale=n.bumpFactor===void 0?1:n.bumpFactor,n.bumpTexture!==void 0&&r.push(this.parser.assignTexture(t,`bumpMap`,n.bumpTexture)),Promise.all(r)}},ot=class{constructor(e){this.parser=e,this.name=L.KHR_MATERIALS_ANISOTROPY}getMaterialType(e){return I(this.parser,e,this.name)===null?null:b}extendMaterialParams(e,t){let n=I(this.parser,e,this.name);if(n===null)return Promise.resolve();let r=[];return n.anisotropyStrength!==void 0&&(t.anisotropy=n.anisotropyStrength),n.anisotropyRotation!==void 0&&(t.anisotropyRotation=n.anisotropyRotation),n.anisotropyTexture!==void 0&&r.push(this.parser.assignTexture(t,`anisotropyMap`,n.anisotropyTexture)),Promise.all(r)}},st=class{constructor(e){this.parser=e,this.name=L.KHR_TEXTURE_BASISU}loadTexture(e){let t=this.parser,n=t.json,r=n.textures[e];if(!r.extensions||!r.extensions[this.name])return null;let i=r.extensions[this.name],a=t.options.ktx2Loader;if(!a){if(n.extensionsRequired&&n.extensionsRequired.indexOf(this.name)>=0)throw Error(`THREE.GLTFLoader: setKTX2Loader must be called before loading KTX2 textures`);return null}return t.loadTextureImage(e,i.source,a)}},ct=class{constructor(e){this.parser=e,this.name=L.EXT_TEXTURE_WEBP}loadTexture(e){let t=this.name,n=this.parser,r=n.json,i=r.textures[e];if(!i.extensions||!i.extensions[t])return null;let a=i.extensions[t],o=r.images[a.source],s=n.textureLoader;if(o.uri){let e=n.options.manager.getHandler(o.uri);e!==null&&(s=e)}return n.loadTextureImage(e,a.source,s)}},lt=class{constructor(e){this.parser=e,this.name=L.EXT_TEXTURE_AVIF}loadTexture(e){let t=this.name,n=this.parser,r=n.json,i=r.textures[e];if(!i.extensions||!i.extensions[t])return null;let a=i.extensions[t],o=r.images[a.source],s=n.textureLoader;if(o.uri){let e=n.options.manager.getHandler(o.uri);e!==null&&(s=e)}return n.loadTextureImage(e,a.source,s)}},ut=class{constructor(e,t){this.name=t,this.parser=e}loadBufferView(e){let t=this.parser.json,n=t.bufferViews[e];if(n.extensions&&n.extensions[this.name]){let e=n.extensions[this.name],r=this.parser.getDependency(`buffer`,e.buffer),i=this.parser.options.meshoptDecoder;if(!i||!i.supported){if(t.extensionsRequired&&t.extensionsRequired.indexOf(this.name)>=0)throw Error(`THREE.GLTFLoader: setMeshoptDecoder must be called before loading compressed files`);return null}return r.then(function(t){let n=e.byteOffset||0,r=e.byteLength||0,a=e.count,o=e.byteStride,s=new Uint8Array(t,n,r);return i.decodeGltfBufferAsync?i.decodeGltfBufferAsync(a,o,s,e.mode,e.filter).then(function(e){return e.buffer}):i.ready.then(function(){let t=new ArrayBuffer(a*o);return i.decodeGltfBuffer(new Uint8Array(t),a,o,s,e.mode,e.filter),t})})}return null}},dt=class{constructor(e){this.name=L.EXT_MESH_GPU_INSTANCING,this.parser=e}createNodeMesh(e){let t=this.parser.json,n=t.nodes[e];if(!n.extensions||!n.extensions[this.name]||n.mesh===void 0)return null;let r=t.meshes[n.mesh];for(let e of r.primitives)if(e.mode!==z.TRIANGLES&&e.mode!==z.TRIANGLE_STRIP&&e.mode!==z.TRIANGLE_FAN&&e.mode!==void 0)return null;let i=n.extensions[this.name].attributes,a=[],o={};for(let e in i)a.push(this.parser.getDependency(`accessor`,i[e]).then(t=>(o[e]=t,o[e])));return a.length<1?null:(a.push(this.parser.createNodeMesh(e)),Promise.all(a).then(e=>{let t=e.pop(),n=t.isGroup?t.children:[t],r=e[0].count,i=[];for(let e of n){let t=new j,n=new C,a=new le,s=new C(1,1,1),l=new c(e.geometry,e.material,r);for(let e=0;e<r;e++)o.TRANSLATION&&n.fromBufferAttribute(o.TRANSLATION,e),o.ROTATION&&a.fromBufferAttribute(o.ROTATION,e),o.SCALE&&s.fromBufferAttribute(o.SCALE,e),l.setMatrixAt(e,t.compose(n,a,s));let d=null;for(let e in o)if(e===`_COLOR_0`){let t=o[e];l.instanceColor=new u(t.array,t.itemSize,t.normalized)}else if(e!==`TRANSLATION`&&e!==`ROTATION`&&e!==`SCALE`){if(d===null){let e=l.geometry;d=new Fe,d.name=e.name;for(let t in e.attributes)d.setAttribute(t,e.attributes[t]);for(let t in e.morphAttributes)d.morphAttributes[t]=e.morphAttributes[t];e.index!==null&&d.setIndex(e.index),d.morphTargetsRelative=e.morphTargetsRelative;for(let t of e.groups)d.addGroup(t.start,t.count,t.materialIndex);e.boundingBox!==null&&(d.boundingBox=e.boundingBox.clone()),e.boundingSphere!==null&&(d.boundingSphere=e.boundingSphere.clone()),d.drawRange.start=e.drawRange.start,d.drawRange.count=e.drawRange.count,d.userData=Object.assign({},e.userData),l.geometry=d}let t=o[e];d.setAttribute(e,new u(t.array,t.itemSize,t.normalized))}v.prototype.copy.call(l,e),this.parser.assignFinalMaterial(l),i.push(l)}return t.isGroup?(t.clear(),t.add(...i),t):i[0]}))}},ft=`glTF`,R=12,pt={JSON:1313821514,BIN:5130562},mt=class{constructor(e){this.name=L.KHR_BINARY_GLTF,this.content=null,this.body=null;let t=new DataView(e,0,R),n=new TextDecoder;if(this.header={magic:n.decode(new Uint8Array(e.slice(0,4))),version:t.getUint32(4,!0),length:t.getUint32(8,!0)},this.header.magic!==ft)throw Error(`THREE.GLTFLoader: Unsupported glTF-Binary header.`);if(this.header.version<2)throw Error(`THREE.GLTFLoader: Legacy binary file detected.`);let r=this.header.length-R,i=new DataView(e,R),a=0;for(;a<r;){let t=i.getUint32(a,!0);a+=4;let r=i.getUint32(a,!0);if(a+=4,r===pt.JSON){let r=new Uint8Array(e,R+a,t);this.content=n.decode(r)}else if(r===pt.BIN){let n=R+a;this.body=e.slice(n,n+t)}a+=t}if(this.content===null)throw Error(`THREE.GLTFLoader: JSON content not found.`)}},ht=class{constructor(e,t){if(!t)throw Error(`THREE.GLTFLoader: No DRACOLoader instance provided.`);this.name=L.KHR_DRACO_MESH_COMPRESSION,this.json=e,this.dracoLoader=t,this.dracoLoader.preload()}decodePrimitive(e,t){let n=this.json,r=this.dracoLoader,i=e.extensions[this.name].bufferView,a=e.extensions[this.name].attributes,o={},s={},c={};for(let e in a){let t=wt[e]||e.toLowerCase();o[t]=a[e]}for(let t in e.attributes){let r=wt[t]||t.toLowerCase();if(a[t]!==void 0){let i=n.accessors[e.attributes[t]];c[r]=B[i.componentType].name,s[r]=i.normalized===!0}}return t.getDependency(`bufferView`,i).then(function(e){return new Promise(function(t,n){r.decodeDracoFile(e,function(e){for(let t in e.attributes){let n=e.attributes[t],r=s[t];r!==void 0&&(n.normalized=r)}t(e)},o,c,A,n)})})}},gt=class{constructor(){this.name=L.KHR_TEXTURE_TRANSFORM}extendTexture(e,t){if((t.texCoord===void 0||t.texCoord===e.channel)&&t.offset===void 0&&t.rotation===void 0&&t.scale===void 0)return e;if(e=e.clone(),t.texCoord!==void 0&&(e.channel=t.texCoord),t.offset!==void 0&&e.offset.fromArray(t.offset),t.rotation!==void 0&&(e.rotation=t.rotation),t.scale!==void 0&&e.repeat.fromArray(t.scale),t.rotation!==void 0){let t=Math.cos(e.rotation),n=Math.sin(e.rotation);e.matrix.set(e.repeat.x*t,e.repeat.y*n,e.offset.x,-e.repeat.x*n,e.repeat.y*t,e.offset.y,0,0,1),e.matrixAutoUpdate=!1}return e.needsUpdate=!0,e}},_t=class{constructor(){this.name=L.KHR_MESH_QUANTIZATION}},vt=class extends ae{constructor(e,t,n,r){super(e,t,n,r)}copySampleValue_(e){let t=this.resultBuffer,n=this.sampleValues,r=this.valueSize,i=e*r*3+r;for(let e=0;e!==r;e++)t[e]=n[i+e];return t}interpolate_(e,t,n,r){let i=this.resultBuffer,a=this.sampleValues,o=this.valueSize,s=o*2,c=o*3,l=r-t,u=(n-t)/l,d=u*u,f=d*u,p=e*c,m=p-c,h=-2*f+3*d,g=f-d,_=1-h,v=g-d+u;for(let e=0;e!==o;e++){let t=a[m+e+o],n=a[m+e+s]*l,r=a[p+e+o],c=a[p+e]*l;i[e]=_*t+v*n+h*r+g*c}return i}},yt=new le,bt=class extends vt{interpolate_(e,t,n,r){let i=super.interpolate_(e,t,n,r);return yt.fromArray(i).normalize().toArray(i),i}},z={FLOAT:5126,FLOAT_MAT3:35675,FLOAT_MAT4:35676,FLOAT_VEC2:35664,FLOAT_VEC3:35665,FLOAT_VEC4:35666,LINEAR:9729,REPEAT:10497,SAMPLER_2D:35678,POINTS:0,LINES:1,LINE_LOOP:2,LINE_STRIP:3,TRIANGLES:4,TRIANGLE_STRIP:5,TRIANGLE_FAN:6,UNSIGNED_BYTE:5121,UNSIGNED_SHORT:5123},B={5120:Int8Array,5121:Uint8Array,5122:Int16Array,5123:Uint16Array,5125:Uint32Array,5126:Float32Array},xt={9728:re,9729:Pe,9984:n,9985:Ee,9986:Te,9987:ge},St={33071:De,33648:o,10497:_},Ct={SCALAR:1,VEC2:2,VEC3:3,VEC4:4,MAT2:4,MAT3:9,MAT4:16},wt={POSITION:`position`,NORMAL:`normal`,TANGENT:`tangent`,TEXCOORD_0:`uv`,TEXCOORD_1:`uv1`,TEXCOORD_2:`uv2`,TEXCOORD_3:`uv3`,COLOR_0:`color`,WEIGHTS_0:`skinWeight`,JOINTS_0:`skinIndex`},V={scale:`scale`,translation:`position`,rotation:`quaternion`,weights:`morphTargetInfluences`},Tt={CUBICSPLINE:void 0,LINEAR:ve,STEP:t},Et={OPAQUE:`OPAQUE`,MASK:`MASK`,BLEND:`BLEND`};function Dt(e){return e.DefaultMaterial===void 0&&(e.DefaultMaterial=new s({color:16777215,emissive:0,metalness:1,roughness:1,transparent:!1,depthTest:!0,side:0})),e.DefaultMaterial}function H(e,t,n){for(let r in n.extensions)e[r]===void 0&&(t.userData.gltfExtensions=t.userData.gltfExtensions||{},t.userData.gltfExtensions[r]=n.extensions[r])}function U(e,t){t.extras!==void 0&&(typeof t.extras==`object`?Object.assign(e.userData,t.extras):console.warn(`THREE.GLTFLoader: Ignoring primitive type .extras, `+t.extras))}function Ot(e,t,n){let r=!1,i=!1,a=!1;for(let e=0,n=t.length;e<n;e++){let n=t[e];if(n.POSITION!==void 0&&(r=!0),n.NORMAL!==void 0&&(i=!0),n.COLOR_0!==void 0&&(a=!0),r&&i&&a)break}if(!r&&!i&&!a)return Promise.resolve(e);let o=[],s=[],c=[];for(let l=0,u=t.length;l<u;l++){let u=t[l];if(r){let t=u.POSITION===void 0?e.attributes.position:n.getDependency(`accessor`,u.POSITION);o.push(t)}if(i){let t=u.NORMAL===void 0?e.attributes.normal:n.getDependency(`accessor`,u.NORMAL);s.push(t)}if(a){let t=u.COLOR_0===void 0?e.attributes.color:n.getDependency(`accessor`,u.COLOR_0);c.push(t)}}return Promise.all([Promise.all(o),Promise.all(s),Promise.all(c)]).then(function(t){let n=t[0],o=t[1],s=t[2];return r&&(e.morphAttributes.position=n),i&&(e.morphAttributes.normal=o),a&&(e.morphAttributes.color=s),e.morphTargetsRelative=!0,e})}function kt(e,t){if(e.updateMorphTargets(),t.weights!==void 0)for(let n=0,r=t.weights.length;n<r;n++)e.morphTargetInfluences[n]=t.weights[n];if(t.extras&&Array.isArray(t.extras.targetNames)){let n=t.extras.targetNames;if(e.morphTargetInfluences.length===n.length){e.morphTargetDictionary={};for(let t=0,r=n.length;t<r;t++)e.morphTargetDictionary[n[t]]=t}else console.warn(`THREE.GLTFLoader: Invalid extras.targetNames length. Ignoring names.`)}}function At(e){let t,n=e.extensions&&e.extensions[L.KHR_DRACO_MESH_COMPRESSION];if(t=n?`draco:`+n.bufferView+`:`+n.indices+`:`+jt(n.attributes):e.indices+`:`+jt(e.attributes)+`:`+e.mode,e.targets!==void 0)for(let n=0,r=e.targets.length;n<r;n++)t+=`:`+jt(e.targets[n]);return t}function jt(e){let t=``,n=Object.keys(e).sort();for(let r=0,i=n.length;r<i;r++)t+=n[r]+`:`+e[n[r]]+`;`;return t}function Mt(e){switch(e){case Int8Array:return 1/127;case Uint8Array:return 1/255;case Int16Array:return 1/32767;case Uint16Array:return 1/65535;default:throw Error(`THREE.GLTFLoader: Unsupported normalized accessor component type.`)}}function Nt(e){return e.search(/\.jpe?g($|\?)/i)>0||e.search(/^data\:image\/jpeg/)===0?`image/jpeg`:e.search(/\.webp($|\?)/i)>0||e.search(/^data\:image\/webp/)===0?`image/webp`:e.search(/\.ktx2($|\?)/i)>0||e.search(/^data\:image\/ktx2/)===0?`image/ktx2`:`image/png`}var Pt=new j,Ft=class{constructor(e={},t={}){this.json=e,this.extensions={},this.plugins={},this.options=t,this.cache=new Ke,this.associations=new Map,this.primitiveCache={},this.nodeCache={},this.meshCache={refs:{},uses:{}},this.cameraCache={refs:{},uses:{}},this.lightCache={refs:{},uses:{}},this.sourceCache={},this.textureCache={},this.nodeNamesUsed={};let n=!1,r=-1,i=!1,a=-1;if(typeof navigator<`u`&&navigator.userAgent!==void 0){let e=navigator.userAgent;n=/^((?!chrome|android).)*safari/i.test(e)===!0;let t=e.match(/Version\/(\d+)/);r=n&&t?parseInt(t[1],10):-1,i=e.indexOf(`Firefox`)>-1,a=i?e.match(/Firefox\/([0-9]+)\./)[1]:-1}typeof createImageBitmap>`u`||n&&r<17||i&&a<98?(this.textureLoader=new me(this.options.manager),this.textureLoader.setPriority(this.options.priority),this.textureLoader.setCache(this.options.cache)):(this.textureLoader=new ce(this.options.manager),this.textureLoader.setPriority(this.options.priority),this.textureLoader.setCache(this.options.cache)),this.textureLoader.setCrossOrigin(this.options.crossOrigin),this.textureLoader.setWithCredentials(this.options.withCredentials),this.textureLoader.setRequestHeader(this.options.requestHeader),this.fileLoader=new g(this.options.manager),this.fileLoader.setPriority(this.options.priority),this.fileLoader.setCache(this.options.cache),this.fileLoader.setResponseType(`arraybuffer`),(this.options.withCredentials||this.options.crossOrigin===`use-credentials`)&&this.fileLoader.setWithCredentials(!0)}setExtensions(e){this.extensions=e}setPlugins(e){this.plugins=e}parse(e,t){let n=this,r=this.json,i=this.extensions;this.cache.removeAll(),this.nodeCache={},this._invokeAll(function(e){return e._markDefs&&e._markDefs()}),Promise.all(this._invokeAll(function(e){return e.beforeRoot&&e.beforeRoot()})).then(function(){return Promise.all([n.getDependencies(`scene`),n.getDependencies(`animation`),n.getDependencies(`camera`)])}).then(function(t){let a={scene:t[0][r.scene||0],scenes:t[0],animations:t[1],cameras:t[2],asset:r.asset,parser:n,userData:{}};return H(i,a,r),U(a,r),Promise.all(n._invokeAll(function(e){return e.afterRoot&&e.afterRoot(a)})).then(function(){for(let e of a.scenes)e.updateMatrixWorld();e(a)})}).catch(t)}_markDefs(){let e=this.json.nodes||[],t=this.json.skins||[],n=this.json.meshes||[];for(let n=0,r=t.length;n<r;n++){let r=t[n].joints;for(let t=0,n=r.length;t<n;t++)e[r[t]].isBone=!0}for(let t=0,r=e.length;t<r;t++){let r=e[t];r.mesh!==void 0&&(this._addNodeRef(this.meshCache,r.mesh),r.skin!==void 0&&(n[r.mesh].isSkinnedMesh=!0)),r.camera!==void 0&&this._addNodeRef(this.cameraCache,r.camera)}}_addNodeRef(e,t){t!==void 0&&(e.refs[t]===void 0&&(e.refs[t]=e.uses[t]=0),e.refs[t]++)}_getNodeRef(e,t,n){if(e.refs[t]<=1)return n;let r=n.clone(),i=(e,t)=>{let n=this.associations.get(e);n!=null&&this.associations.set(t,n);for(let[n,r]of e.children.entries())i(r,t.children[n])};return i(n,r),r.name+=`_instance_`+e.uses[t]++,r}_invokeOne(e){let t=Object.values(this.plugins);t.push(this);for(let n=0;n<t.length;n++){let r=e(t[n]);if(r)return r}return null}_invokeAll(e){let t=Object.values(this.plugins);t.unshift(this);let n=[];for(let r=0;r<t.length;r++){let i=e(t[r]);i&&n.push(i)}return n}getDependency(e,t){let n=e+`:`+t,r=this.cache.get(n);if(!r){switch(e){case`scene`:r=this.loadScene(t);break;case`node`:r=this._invokeOne(function(e){return e.loadNode&&e.loadNode(t)});break;case`mesh`:r=this._invokeOne(function(e){return e.loadMesh&&e.loadMesh(t)});break;case`accessor`:r=this.loadAccessor(t);break;case`bufferView`:r=this._invokeOne(function(e){return e.loadBufferView&&e.loadBufferView(t)});break;case`buffer`:r=this.loadBuffer(t);break;case`material`:r=this._invokeOne(function(e){return e.loadMaterial&&e.loadMaterial(t)});break;case`texture`:r=this._invokeOne(function(e){return e.loadTexture&&e.loadTexture(t)});break;case`skin`:r=this.loadSkin(t);break;case`animation`:r=this._invokeOne(function(e){return e.loadAnimation&&e.loadAnimation(t)});break;case`camera`:r=this.loadCamera(t);break;default:if(r=this._invokeOne(function(n){return n!=this&&n.getDependency&&n.getDependency(e,t)}),!r)throw Error(`Unknown type: `+e)}this.cache.add(n,r)}return r}getDependencies(e){let t=this.cache.get(e);if(!t){let n=this,r=this.json[e+(e===`mesh`?`es`:`s`)]||[];t=Promise.all(r.map(function(t,r){return n.getDependency(e,r)})),this.cache.add(e,t)}return t}loadBuffer(e){let t=this.json.buffers[e],n=this.fileLoader;if(t.type&&t.type!==`arraybuffer`)throw Error(`THREE.GLTFLoader: `+t.type+` buffer type is not supported.`);if(t.uri===void 0&&e===0)return Promise.resolve(this.extensions[L.KHR_BINARY_GLTF].body);let r=this.options;return new Promise(function(e,i){n.load(O.resolveURL(t.uri,r.path),e,void 0,function(){i(Error(`THREE.GLTFLoader: Failed to load buffer "`+t.uri+`".`))})})}loadBufferView(e){let t=this.json.bufferViews[e];return this.getDependency(`buffer`,t.buffer).then(function(e){let n=t.byteLength||0,r=t.byteOffset||0;return e.slice(r,r+n)})}loadAccessor(e){let t=this,n=this.json,r=this.json.accessors[e];if(r.bufferView===void 0&&r.sparse===void 0){let e=Ct[r.type],t=B[r.componentType],n=r.normalized===!0,i=new t(r.count*e);return Promise.resolve(new T(i,e,n))}let i=[];return r.bufferView===void 0?i.push(null):i.push(this.getDependency(`bufferView`,r.bufferView)),r.sparse!==void 0&&(i.push(this.getDependency(`bufferView`,r.sparse.indices.bufferView)),i.push(this.getDependency(`bufferView`,r.sparse.values.bufferView))),Promise.all(i).then(function(e){let i=e[0],a=Ct[r.type],o=B[r.componentType],s=o.BYTES_PER_ELEMENT,c=s*a,l=r.byteOffset||0,u=r.bufferView===void 0?void 0:n.bufferViews[r.bufferView].byteStride,d=r.normalized===!0,f,p;if(u&&u!==c){let e=Math.floor(l/u),n=`InterleavedBuffer:`+r.bufferView+`:`+r.componentType+`:`+e+`:`+r.count,c=t.cache.get(n);c||(f=new o(i,e*u,r.count*u/s),c=new fe(f,u/s),t.cache.add(n,c)),p=new x(c,a,l%u/s,d)}else f=i===null?new o(r.count*a):new o(i,l,r.count*a),p=new T(f,a,d);if(r.sparse!==void 0){let t=Ct.SCALAR,n=B[r.sparse.indices.componentType],s=r.sparse.indices.byteOffset||0,c=r.sparse.values.byteOffset||0,l=new n(e[1],s,r.sparse.count*t),u=new o(e[2],c,r.sparse.count*a);i!==null&&(p=new T(p.array.slice(),p.itemSize,p.normalized)),p.normalized=!1;for(let e=0,t=l.length;e<t;e++){let t=l[e];if(p.setX(t,u[e*a]),a>=2&&p.setY(t,u[e*a+1]),a>=3&&p.setZ(t,u[e*a+2]),a>=4&&p.setW(t,u[e*a+3]),a>=5)throw Error(`THREE.GLTFLoader: Unsupported itemSize in sparse BufferAttribute.`)}p.normalized=d}return p})}loadTexture(e){let t=this.json,n=this.options,r=t.textures[e].source,i=t.images[r],a=this.textureLoader;if(i.uri){let e=n.manager.getHandler(i.uri);e!==null&&(a=e)}return this.loadTextureImage(e,r,a)}loadTextureImage(e,t,n){let r=this,i=this.json,a=i.textures[e],o=i.images[t],s=(o.uri||o.bufferView)+`:`+a.sampler;if(this.textureCache[s])return this.textureCache[s];let c=this.loadImageSource(t,n).then(function(t){t.flipY=!1,t.name=a.name||o.name||``,t.name===``&&typeof o.uri==`string`&&o.uri.startsWith(`data:image/`)===!1&&(t.name=o.uri);let n=(i.samplers||{})[a.sampler]||{};return t.magFilter=xt[n.magFilter]||1006,t.minFilter=xt[n.minFilter]||1008,t.wrapS=St[n.wrapS]||1e3,t.wrapT=St[n.wrapT]||1e3,t.generateMipmaps=!t.isCompressedTexture&&t.minFilter!==1003&&t.minFilter!==1006,r.associations.set(t,{textures:e}),t}).catch(function(){return null});return this.textureCache[s]=c,c}loadImageSource(e,t){let n=this,r=this.json,i=this.options;if(this.sourceCache[e]!==void 0)return this.sourceCache[e].then(e=>e.clone());let a=r.images[e],o=self.URL||self.webkitURL,s=a.uri||``,c=!1,l;if(t.isKTX2Loader===!0&&a.bufferView!==void 0)l=n.getDependency(`bufferView`,a.bufferView).then(function(e){return new Promise(function(n,r){t.parse(e,n,r)})});else{if(a.bufferView!==void 0)s=n.getDependency(`bufferView`,a.bufferView).then(function(e){c=!0;let t=new Blob([e],{type:a.mimeType});return s=o.createObjectURL(t),s});else if(a.uri===void 0)throw Error(`THREE.GLTFLoader: Image `+e+` is missing URI and bufferView`);l=Promise.resolve(s).then(function(e){return new Promise(function(n,r){let a=n;t.isImageBitmapLoader===!0&&(a=function(e){let t=new pe(e);t.needsUpdate=!0,n(t)}),t.load(O.resolveURL(e,i.path),a,void 0,r)})})}let u=l.then(function(e){return c===!0&&o.revokeObjectURL(s),U(e,a),e.userData.mimeType=a.mimeType||Nt(a.uri),e}).catch(function(e){throw console.error(`THREE.GLTFLoader: Couldn't load texture`,s),e});return this.sourceCache[e]=u,u}assignTexture(e,t,n,r){let i=this;return this.getDependency(`texture`,n.index).then(function(a){if(!a)return null;if(n.texCoord!==void 0&&n.texCoord>0&&(a=a.clone(),a.channel=n.texCoord),i.extensions[L.KHR_TEXTURE_TRANSFORM]){let e=n.extensions===void 0?void 0:n.extensions[L.KHR_TEXTURE_TRANSFORM];if(e){let t=i.associations.get(a);a=i.extensions[L.KHR_TEXTURE_TRANSFORM].extendTexture(a,e),i.associations.set(a,t)}}return r!==void 0&&(a.colorSpace=r),e[t]=a,a})}assignFinalMaterial(e){let t=e.geometry,n=e.material,r=t.attributes.tangent===void 0,i=t.attributes.color!==void 0,a=t.attributes.normal===void 0;if(e.isPoints){let e=`PointsMaterial:`+n.uuid,t=this.cache.get(e);t||(t=new Le,Se.prototype.copy.call(t,n),t.color.copy(n.color),t.map=n.map,t.sizeAttenuation=!1,this.cache.add(e,t)),n=t}else if(e.isLine){let e=`LineBasicMaterial:`+n.uuid,t=this.cache.get(e);t||(t=new Ce,Se.prototype.copy.call(t,n),t.color.copy(n.color),t.map=n.map,this.cache.add(e,t)),n=t}if(r||i||a){let e=`ClonedMaterial:`+n.uuid+`:`;r&&(e+=`derivative-tangents:`),i&&(e+=`vertex-colors:`),a&&(e+=`flat-shading:`);let t=this.cache.get(e);t||(t=n.clone(),i&&(t.vertexColors=!0),a&&(t.flatShading=!0),r&&(t.normalScale&&(t.normalScale.y*=-1),t.clearcoatNormalScale&&(t.clearcoatNormalScale.y*=-1)),this.cache.add(e,t),this.associations.set(t,this.associations.get(n))),n=t}e.material=n}getMaterialType(){return s}loadMaterial(e){let t=this,n=this.json,r=this.extensions,i=n.materials[e],a,o={},s=i.extensions||{},c=[];if(s[L.KHR_MATERIALS_UNLIT]){let e=r[L.KHR_MATERIALS_UNLIT];a=e.getMaterialType(),c.push(e.extendParams(o,i,t))}else{let n=i.pbrMetallicRoughness||{};if(o.color=new w(1,1,1),o.opacity=1,Array.isArray(n.baseColorFactor)){let e=n.baseColorFactor;o.color.setRGB(e[0],e[1],e[2],A),o.opacity=e[3]}n.baseColorTexture!==void 0&&c.push(t.assignTexture(o,`map`,n.baseColorTexture,N)),o.metalness=n.metallicFactor===void 0?1:n.metallicFactor,o.roughness=n.roughnessFactor===void 0?1:n.roughnessFactor,n.metallicRoughnessTexture!==void 0&&(c.push(t.assignTexture(o,`metalnessMap`,n.metallicRoughnessTexture)),c.push(t.assignTexture(o,`roughnessMap`,n.metallicRoughnessTexture))),a=this._invokeOne(function(t){return t.getMaterialType&&t.getMaterialType(e)}),c.push(Promise.all(this._invokeAll(function(t){return t.extendMaterialParams&&t.extendMaterialParams(e,o)})))}i.doubleSided===!0&&(o.side=2);let l=i.alphaMode||Et.OPAQUE;if(l===Et.BLEND?(o.transparent=!0,o.depthWrite=!1):(o.transparent=!1,l===Et.MASK&&(o.alphaTest=i.alphaCutoff===void 0?.5:i.alphaCutoff)),i.normalTexture!==void 0&&a!==S&&(c.push(t.assignTexture(o,`normalMap`,i.normalTexture)),o.normalScale=new _e(1,1),i.normalTexture.scale!==void 0)){let e=i.normalTexture.scale;o.normalScale.set(e,e)}if(i.occlusionTexture!==void 0&&a!==S&&(c.push(t.assignTexture(o,`aoMap`,i.occlusionTexture)),i.occlusionTexture.strength!==void 0&&(o.aoMapIntensity=i.occlusionTexture.strength)),i.emissiveFactor!==void 0&&a!==S){let e=i.emissiveFactor;o.emissive=new w().setRGB(e[0],e[1],e[2],A)}return i.emissiveTexture!==void 0&&a!==S&&c.push(t.assignTexture(o,`emissiveMap`,i.emissiveTexture,N)),Promise.all(c).then(function(){let n=new a(o);return i.name&&(n.name=i.name),U(n,i),t.associations.set(n,{materials:e}),i.extensions&&H(r,n,i),n})}createUniqueName(e){let t=r.sanitizeNodeName(e||``);return t in this.nodeNamesUsed?t+`_`+ ++this.nodeNamesUsed[t]:(this.nodeNamesUsed[t]=0,t)}loadGeometries(e){let t=this,n=this.extensions,r=this.primitiveCache;function i(e){return n[L.KHR_DRACO_MESH_COMPRESSION].decodePrimitive(e,t).then(function(n){return Lt(n,e,t)})}let a=[];for(let n=0,o=e.length;n<o;n++){let o=e[n],s=At(o),c=r[s];if(c)a.push(c.promise);else{let e;e=o.extensions&&o.extensions[L.KHR_DRACO_MESH_COMPRESSION]?i(o):Lt(new Fe,o,t),o.mode===z.TRIANGLE_STRIP?e=e.then(e=>He(e,1)):o.mode===z.TRIANGLE_FAN&&(e=e.then(e=>He(e,2))),r[s]={primitive:o,promise:e},a.push(e)}}return Promise.all(a)}loadMesh(e){let t=this,n=this.json,r=this.extensions,i=n.meshes[e],a=i.primitives,o=[];for(let e=0,t=a.length;e<t;e++){let t=a[e].material===void 0?Dt(this.cache):this.getDependency(`material`,a[e].material);o.push(t)}return o.push(t.loadGeometries(a)),Promise.all(o).then(async function(n){let o=n.slice(0,n.length-1),s=n[n.length-1],c=[];for(let n=0,u=s.length;n<u;n++){let u=s[n],d=a[n],f,p=o[n];if(d.mode===z.TRIANGLES||d.mode===z.TRIANGLE_STRIP||d.mode===z.TRIANGLE_FAN||d.mode===void 0){let e=i.isSkinnedMesh===!0,t=u.hasAttribute(`skinIndex`)&&u.hasAttribute(`skinWeight`);e&&t===!1&&console.warn(`THREE.GLTFLoader: Missing skinIndex or skinWeight attributes. Skinning disabled.`),f=e&&t?new l(u,p):new M(u,p),f.isSkinnedMesh===!0&&f.normalizeSkinWeights()}else if(d.mode===z.LINES)f=new E(u,p);else if(d.mode===z.LINE_STRIP)f=new Ae(u,p);else if(d.mode===z.LINE_LOOP)f=new he(u,p);else if(d.mode===z.POINTS)f=new oe(u,p);else throw Error(`THREE.GLTFLoader: Primitive mode unsupported: `+d.mode);Object.keys(f.geometry.morphAttributes).length>0&&kt(f,i),f.name=t.createUniqueName(i.name||`mesh_`+e),U(f,i),d.extensions&&H(r,f,d),t.assignFinalMaterial(f),c.push(f)}for(let n=0,r=c.length;n<r;n++)t.associations.set(c[n],{meshes:e,primitives:n});if(c.length===1)return i.extensions&&H(r,c[0],i),c[0];let u=new y;i.extensions&&H(r,u,i),t.associations.set(u,{meshes:e});for(let e=0,t=c.length;e<t;e++)u.add(c[e]);return u})}loadCamera(e){let t,n=this.json.cameras[e],r=n[n.type];if(!r)console.warn(`THREE.GLTFLoader: Missing camera parameters.`);else return n.type===`perspective`?t=new ie(xe.radToDeg(r.yfov),r.aspectRatio||1,r.znear||1,r.zfar||2e6):n.type===`orthographic`&&(t=new te(-r.xmag,r.xmag,r.ymag,-r.ymag,r.znear,r.zfar)),n.name&&(t.name=this.createUniqueName(n.name)),U(t,n),Promise.resolve(t)}loadSkin(e){let t=this.json.skins[e],n=[];for(let e=0,r=t.joints.length;e<r;e++)n.push(this._loadNodeShallow(t.joints[e]));return t.inverseBindMatrices===void 0?n.push(null):n.push(this.getDependency(`accessor`,t.inverseBindMatrices)),Promise.all(n).then(function(e){let n=e.pop(),r=e,i=[],a=[];for(let e=0,o=r.length;e<o;e++){let o=r[e];if(o){i.push(o);let t=new j;n!==null&&t.fromArray(n.array,e*16),a.push(t)}else console.warn(`THREE.GLTFLoader: Joint "%s" could not be found.`,t.joints[e])}return new de(i,a)})}loadAnimation(e){let t=this.json,n=this,r=t.animations[e],i=r.name?r.name:`animation_`+e,a=[],o=[],s=[],c=[],l=[];for(let e=0,t=r.channels.length;e<t;e++){let t=r.channels[e],n=r.samplers[t.sampler],i=t.target,u=i.node,d=r.parameters===void 0?n.input:r.parameters[n.input],f=r.parameters===void 0?n.output:r.parameters[n.output];i.node!==void 0&&(a.push(this.getDependency(`node`,u)),o.push(this.getDependency(`accessor`,d)),s.push(this.getDependency(`accessor`,f)),c.push(n),l.push(i))}return Promise.all([Promise.all(a),Promise.all(o),Promise.all(s),Promise.all(c),Promise.all(l)]).then(function(e){let t=e[0],a=e[1],o=e[2],s=e[3],c=e[4],l=[];for(let e=0,r=t.length;e<r;e++){let r=t[e],i=a[e],u=o[e],d=s[e],f=c[e];if(r===void 0)continue;r.updateMatrix&&r.updateMatrix();let p=n._createAnimationTracks(r,i,u,d,f);if(p)for(let e=0;e<p.length;e++)l.push(p[e])}let u=new Me(i,void 0,l);return U(u,r),u})}createNodeMesh(e){let t=this.json,n=this,r=t.nodes[e];return r.mesh===void 0?null:n.getDependency(`mesh`,r.mesh).then(function(e){let t=n._getNodeRef(n.meshCache,r.mesh,e);return r.weights!==void 0&&t.traverse(function(e){if(e.isMesh)for(let t=0,n=r.weights.length;t<n;t++)e.morphTargetInfluences[t]=r.weights[t]}),t})}loadNode(e){let t=this.json,n=this,r=t.nodes[e],i=n._loadNodeShallow(e),a=[],o=r.children||[];for(let e=0,t=o.length;e<t;e++)a.push(n.getDependency(`node`,o[e]));let s=r.skin===void 0?Promise.resolve(null):n.getDependency(`skin`,r.skin);return Promise.all([i,Promise.all(a),s]).then(function(e){let t=e[0],n=e[1],r=e[2];r!==null&&t.traverse(function(e){e.isSkinnedMesh&&e.bind(r,Pt)});for(let e=0,r=n.length;e<r;e++)t.add(n[e]);if(t.userData.pivot!==void 0&&n.length>0){let e=t.userData.pivot,r=n[0];t.pivot=new C().fromArray(e),t.position.x-=e[0],t.position.y-=e[1],t.position.z-=e[2],r.position.set(0,0,0),delete t.userData.pivot}return t})}_loadNodeShallow(e){let t=this.json,n=this.extensions,r=this;if(this.nodeCache[e]!==void 0)return this.nodeCache[e];let i=t.nodes[e],a=i.name?r.createUniqueName(i.name):``,o=[],s=r._invokeOne(function(t){return t.createNodeMesh&&t.createNodeMesh(e)});return s&&o.push(s),i.camera!==void 0&&o.push(r.getDependency(`camera`,i.camera).then(function(e){return r._getNodeRef(r.cameraCache,i.camera,e)})),r._invokeAll(function(t){return t.createNodeAttachment&&t.createNodeAttachment(e)}).forEach(function(e){o.push(e)}),this.nodeCache[e]=Promise.all(o).then(function(t){let o;if(o=i.isBone===!0?new je:t.length>1?new y:t.length===1?t[0]:new v,o!==t[0])for(let e=0,n=t.length;e<n;e++)o.add(t[e]);if(i.name&&(o.userData.name=i.name,o.name=a),U(o,i),i.extensions&&H(n,o,i),i.matrix!==void 0){let e=new j;e.fromArray(i.matrix),o.applyMatrix4(e)}else i.translation!==void 0&&o.position.fromArray(i.translation),i.rotation!==void 0&&o.quaternion.fromArray(i.rotation),i.scale!==void 0&&o.scale.fromArray(i.scale);if(!r.associations.has(o))r.associations.set(o,{});else if(i.mesh!==void 0&&r.meshCache.refs[i.mesh]>1){let e=r.associations.get(o);r.associations.set(o,{...e})}return r.associations.get(o).nodes=e,o}),this.nodeCache[e]}loadScene(e){let t=this.extensions,n=this.json.scenes[e],r=this,i=new y;n.name&&(i.name=r.createUniqueName(n.name)),U(i,n),n.extensions&&H(t,i,n);let a=n.nodes||[],o=[];for(let e=0,t=a.length;e<t;e++)o.push(r.getDependency(`node`,a[e]));return Promise.all(o).then(function(e){for(let t=0,n=e.length;t<n;t++){let n=e[t];n.parent===null?i.add(n):i.add(Ue(n))}return r.associations=(e=>{let t=new Map;for(let[e,n]of r.associations)(e instanceof Se||e instanceof pe)&&t.set(e,n);return e.traverse(e=>{let n=r.associations.get(e);n!=null&&t.set(e,n)}),t})(i),i})}_createAnimationTracks(e,t,n,r,i){let a=[],o=e.name?e.name:e.uuid,s=[];function c(e){e.morphTargetInfluences&&s.push(e.name?e.name:e.uuid)}V[i.path]===V.weights?(c(e),e.isGroup&&e.children.forEach(c)):s.push(o);let l;switch(V[i.path]){case V.weights:l=we;break;case V.rotation:l=f;break;case V.translation:case V.scale:l=Oe;break;default:switch(n.itemSize){case 1:l=we;break;default:l=Oe}}let u=r.interpolation===void 0?ve:Tt[r.interpolation],d=this._getArrayFromAccessor(n);for(let e=0,n=s.length;e<n;e++){let n=new l(s[e]+`.`+V[i.path],t.array,d,u);r.interpolation===`CUBICSPLINE`&&this._createCubicSplineTrackInterpolant(n),a.push(n)}return a}_getArrayFromAccessor(e){let t=e.array;if(e.normalized){let e=Mt(t.constructor),n=new Float32Array(t.length);for(let r=0,i=t.length;r<i;r++)n[r]=t[r]*e;t=n}return t}_createCubicSplineTrackInterpolant(e){e.createInterpolant=function(e){return new(this instanceof f?bt:vt)(this.times,this.values,this.getValueSize()/3,e)},e.createInterpolant.isInterpolantFactoryMethodGLTFCubicSpline=!0}};function It(e,t,n){let r=t.attributes,i=new k;if(r.POSITION!==void 0){let e=n.json.accessors[r.POSITION],t=e.min,a=e.max;if(t!==void 0&&a!==void 0){if(i.set(new C(t[0],t[1],t[2]),new C(a[0],a[1],a[2])),e.normalized){let t=Mt(B[e.componentType]);i.min.multiplyScalar(t),i.max.multiplyScalar(t)}}else{console.warn(`THREE.GLTFLoader: Missing min/max properties for accessor POSITION.`);return}}else return;let a=t.targets;if(a!==void 0){let e=new C,t=new C;for(let r=0,i=a.length;r<i;r++){let i=a[r];if(i.POSITION!==void 0){let r=n.json.accessors[i.POSITION],a=r.min,o=r.max;if(a!==void 0&&o!==void 0){if(t.setX(Math.max(Math.abs(a[0]),Math.abs(o[0]))),t.setY(Math.max(Math.abs(a[1]),Math.abs(o[1]))),t.setZ(Math.max(Math.abs(a[2]),Math.abs(o[2]))),r.normalized){let e=Mt(B[r.componentType]);t.multiplyScalar(e)}e.max(t)}else console.warn(`THREE.GLTFLoader: Missing min/max properties for accessor POSITION.`)}}i.expandByVector(e)}e.boundingBox=i;let o=new m;i.getCenter(o.center),o.radius=i.min.distanceTo(i.max)/2,e.boundingSphere=o}function Lt(e,t,n){let r=t.attributes,i=[];function a(t,r){return n.getDependency(`accessor`,t).then(function(t){e.setAttribute(r,t)})}for(let t in r){let n=wt[t]||t.toLowerCase();n in e.attributes||i.push(a(r[t],n))}if(t.indices!==void 0&&!e.index){let r=n.getDependency(`accessor`,t.indices).then(function(t){e.setIndex(t)});i.push(r)}return be.workingColorSpace!==`srgb-linear`&&`COLOR_0`in r&&console.warn(`THREE.GLTFLoader: Converting vertex colors from "srgb-linear" to "${be.workingColorSpace}" not supported.`),U(e,t),It(e,t,n),Promise.all(i).then(function(){return t.targets===void 0?e:Ot(e,t.targets,n)})}function Rt(e,t){let{numbers:n,count:r}=zt(e),i=t?Uint32Array.from(t,e=>n[e]??0):n,a=i.length/3,o=a>0?Bt(i,r):null;if(o===null)return null;let s=0,c=0;for(let n=0;n<a;n++){let[r,i,a]=[0,1,2].map(e=>3*(t?.[3*n+e]??3*n+e)),o=t=>e[t]??NaN,[l,u,d]=[o(i)-o(r),o(i+1)-o(r+1),o(i+2)-o(r+2)],[f,p,m]=[o(a)-o(r),o(a+1)-o(r+1),o(a+2)-o(r+2)],[h,g,_]=[u*m-d*p,d*f-l*m,l*p-u*f],v=Math.hypot(h,g,_);if(!(v>0))return null;c+=v/2,s+=((o(r)-o(0))*h+(o(r+1)-o(1))*g+(o(r+2)-o(2))*_)/6}return s<=0?null:{faces:a,vertices:r,bodies:o,size:Vt(e),volume:s,area:c}}function zt(e,t=3){let n=new Uint32Array(e.map(e=>e+0).buffer),r=e.length/t,i=(e,r)=>{for(let i=0;i<t;i++)if(n[e+i]!==n[r+i])return!1;return!0},a=new Uint32Array(r),o=new Int32Array(2**Math.ceil(Math.log2(2*r+1))).fill(-1),s=0;for(let e=0;e<r;e++){let r=t*e,[c,l,u]=[n[r]??0,n[r+1]??0,n[r+2]??0],d=Math.imul(c,2654435761)^Math.imul(l,2246822519)^Math.imul(u,3266489917);d^=d>>>15;for(let n=d&o.length-1;;n=n+1&o.length-1){let c=o[n]??-1;if(c<0){o[n]=e,a[e]=s++;break}if(i(r,t*c)){a[e]=a[c]??0;break}}}return{numbers:a,count:s}}function Bt(e,t){let n=new Map,r=e=>e%3==2?e-2:e+1,i=(n,r)=>(e[n]??0)*t+(e[r]??0);for(let t=0;t<e.length;t++){let e=i(t,r(t));if(n.has(e))return null;n.set(e,Math.floor(t/3))}let a=Uint32Array.from({length:e.length/3},(e,t)=>t),o=e=>{let t=e;for(;a[t]!==t;)t=a[t]=a[a[t]??0]??0;return t},s=a.length;for(let t=0;t<e.length;t++){let e=n.get(i(r(t),t));if(e===void 0)return null;let[c,l]=[o(Math.floor(t/3)),o(e)];c!==l&&(a[c]=l,s--)}return s}function Vt(e){let t=[1/0,1/0,1/0],n=[-1/0,-1/0,-1/0];return e.forEach((e,r)=>{t[r%3]=Math.min(t[r%3]??e,e),n[r%3]=Math.max(n[r%3]??e,e)}),[0,1,2].map(e=>(n[e]??0)-(t[e]??0))}function Ht(e){let t=(e?.steps??[]).flatMap(({figures:e})=>Ut(e?.transform)??[]);return t.length===0?null:t.reduce((e,t)=>e.premultiply(t),new j)}function Ut(e){if(!Array.isArray(e)||e.length!==16||!e.every(e=>Number.isFinite(e)))return null;let t=new j().fromArray(e).transpose();return Math.abs(t.determinant())>0?t:null}var Wt=.005;function Gt(e,t){if(e.isEmpty()||t.isEmpty())return null;let n=e.min.distanceTo(e.max)*Wt,[r,i]=[e.getSize(new C),t.getSize(new C)],a=r.distanceTo(i)<=n,o=e.getCenter(new C).distanceTo(t.getCenter(new C));if(a?o<=n:e.intersectsBox(t))return null;let s=t.getCenter(new C).sub(e.getCenter(new C));return new j().makeTranslation(s)}var Kt=1e6,qt=500;function Jt(e){let{numbers:t,count:n}=zt(Yt(e)),r=Xt(e),i=Zt(e),a=new Uint32Array(n);for(let e of t)a[e]=(a[e]??0)+1;for(let e=1;e<n;e++)a[e]=(a[e]??0)+(a[e-1]??0);let o=a.slice(),s=new Uint32Array(t.length);for(let e=t.length-1;e>=0;e--){let n=t[e]??0,r=(o[n]??0)-1;o[n]=r,s[r]=e}let c=Math.cos(30*Math.PI/180),l=new Float32Array(e.length);for(let e=0;e<t.length;e++){let n=t[e]??0,u=3*Math.floor(e/3),[d,f,p]=[r[u]??0,r[u+1]??0,r[u+2]??0],m=i[e]??0,[h,g,_]=[m*d,m*f,m*p],[v,ee]=[o[n]??0,a[n]??0];for(let e=v;e<ee&&ee-v<=qt;e++){let t=s[e]??0,n=3*Math.floor(t/3),[a,o,l]=[r[n]??0,r[n+1]??0,r[n+2]??0];if(n===u||a*d+o*f+l*p<=c)continue;let m=i[t]??0;h+=m*a,g+=m*o,_+=m*l}let te=Math.sqrt(h*h+g*g+_*_)||1;l[3*e]=h/te,l[3*e+1]=g/te,l[3*e+2]=_/te}return l}function Yt(e){let t=e.reduce((e,t)=>Math.max(e,Math.abs(t)),0)||1;return e.map(e=>Math.round(e/t*Kt))}function Xt(e){let t=new Float32Array(e.length/3);for(let n=0;n<t.length/3;n++){let r=t=>e[9*n+t]??0,[i,a,o]=[r(3)-r(0),r(4)-r(1),r(5)-r(2)],[s,c,l]=[r(6)-r(0),r(7)-r(1),r(8)-r(2)],[u,d,f]=[a*l-o*c,o*s-i*l,i*c-a*s],p=Math.sqrt(u*u+d*d+f*f)||1;t[3*n]=u/p,t[3*n+1]=d/p,t[3*n+2]=f/p}return t}function Zt(e){let t=new Float32Array(e.length/3);for(let n=0;n<t.length;n++){let r=3*Math.floor(n/3),i=(t,i)=>e[3*(r+(n+t)%3)+i]??0,[a,o,s]=[i(1,0)-i(0,0),i(1,1)-i(0,1),i(1,2)-i(0,2)],[c,l,u]=[i(2,0)-i(0,0),i(2,1)-i(0,1),i(2,2)-i(0,2)],d=Math.sqrt((a*a+o*o+s*s)*(c*c+l*l+u*u)),f=(a*c+o*l+s*u)/d;t[n]=d>0?Math.acos(Math.min(1,Math.max(-1,f))):0}return t}var Qt=.1;function $t(e){let{numbers:t,count:n}=zt(e),r=new Uint32Array(n);for(let e of t)r[e]=(r[e]??0)+1;return r.filter(e=>e===1).length<=Qt*n}F.line={worldUnits:{value:1},linewidth:{value:1},resolution:{value:new _e},dashOffset:{value:0},dashScale:{value:1},dashSize:{value:1},gapSize:{value:1}},P.line={uniforms:ke.merge([F.common,F.fog,F.line]),vertexShader:`
		#include <common>
		#include <color_pars_vertex>
		#include <fog_pars_vertex>
		#include <logdepthbuf_pars_vertex>
		#include <clipping_planes_pars_vertex>

		uniform float linewidth;
		uniform vec2 resolution;

		attribute vec3 instanceStart;
		attribute vec3 instanceEnd;

		attribute vec3 instanceColorStart;
		attribute vec3 instanceColorEnd;

		#ifdef WORLD_UNITS

			varying vec4 worldPos;
			varying vec3 worldStart;
			varying vec3 worldEnd;

			#ifdef USE_DASH

				varying vec2 vUv;

			#endif

		#else

			varying vec2 vUv;

		#endif

		#ifdef USE_DASH

			uniform float dashScale;
			attribute float instanceDistanceStart;
			attribute float instanceDistanceEnd;
			varying float vLineDistance;

		#endif

		float trimSegmentAlpha( const in vec4 start, const in vec4 end ) {

			// compute the interpolation factor needed to trim the segment so it terminates
			// between the camera plane and the near plane

			// conservative estimate of the near plane
			float a = projectionMatrix[ 2 ][ 2 ]; // 3nd entry in 3th column
			float b = projectionMatrix[ 3 ][ 2 ]; // 3nd entry in 4th column

			// we need different nearEstimate formula for reversed and default depth buffer
			// a is positive with a reversed depth buffer so it can be used for controlling the code flow
			float nearEstimate = ( a > 0.0 ) ? ( - b / ( a + 1.0 ) ) : ( - 0.5 * b / a );

			return ( nearEstimate - start.z ) / ( end.z - start.z );

		}

		void main() {

			#ifdef USE_COLOR

				vColor.xyz = ( position.y < 0.5 ) ? instanceColorStart : instanceColorEnd;

			#endif

			float aspect = resolution.x / resolution.y;

			// camera space
			vec4 start = modelViewMatrix * vec4( instanceStart, 1.0 );
			vec4 end = modelViewMatrix * vec4( instanceEnd, 1.0 );

			#ifdef USE_DASH

				float lineDistanceStart = dashScale * instanceDistanceStart;
				float lineDistanceEnd = dashScale * instanceDistanceEnd;

			#endif

			#ifdef WORLD_UNITS

				worldStart = start.xyz;
				worldEnd = end.xyz;

			#else

				vUv = uv;

			#endif

			// special case for perspective projection, and segments that terminate either in, or behind, the camera plane
			// clearly the gpu firmware has a way of addressing this issue when projecting into ndc space
			// but we need to perform ndc-space calculations in the shader, so we must address this issue directly
			// perhaps there is a more elegant solution -- WestLangley

			bool perspective = ( projectionMatrix[ 2 ][ 3 ] == - 1.0 ); // 4th entry in the 3rd column

			if ( perspective ) {

				if ( start.z < 0.0 && end.z >= 0.0 ) {

					float alpha = trimSegmentAlpha( start, end );
					end.xyz = mix( start.xyz, end.xyz, alpha );

					#ifdef USE_DASH

						lineDistanceEnd = mix( lineDistanceStart, lineDistanceEnd, alpha );

					#endif

				} else if ( end.z < 0.0 && start.z >= 0.0 ) {

					float alpha = trimSegmentAlpha( end, start );
					start.xyz = mix( end.xyz, start.xyz, alpha );

					#ifdef USE_DASH

						lineDistanceStart = mix( lineDistanceEnd, lineDistanceStart, alpha );

					#endif

				}

			}

			#ifdef USE_DASH

				vLineDistance = ( position.y < 0.5 ) ? lineDistanceStart : lineDistanceEnd;
				vUv = uv;

			#endif

			// clip space
			vec4 clipStart = projectionMatrix * start;
			vec4 clipEnd = projectionMatrix * end;

			// ndc space
			vec3 ndcStart = clipStart.xyz / clipStart.w;
			vec3 ndcEnd = clipEnd.xyz / clipEnd.w;

			// direction
			vec2 dir = ndcEnd.xy - ndcStart.xy;

			// account for clip-space aspect ratio
			dir.x *= aspect;
			dir = normalize( dir );

			#ifdef WORLD_UNITS

				vec3 worldDir = normalize( end.xyz - start.xyz );
				vec3 tmpFwd = perspective ? normalize( mix( start.xyz, end.xyz, 0.5 ) ) : vec3( 0.0, 0.0, - 1.0 );
				vec3 worldUp = normalize( cross( worldDir, tmpFwd ) );
				vec3 worldFwd = cross( worldDir, worldUp );
				worldPos = position.y < 0.5 ? start: end;

				// height offset
				float hw = linewidth * 0.5;
				worldPos.xyz += position.x < 0.0 ? hw * worldUp : - hw * worldUp;

				// don't extend the line if we're rendering dashes because we
				// won't be rendering the endcaps
				#ifndef USE_DASH

					// cap extension
					worldPos.xyz += position.y < 0.5 ? - hw * worldDir : hw * worldDir;

					// add width to the box
					worldPos.xyz += worldFwd * hw;

					// endcaps
					if ( position.y > 1.0 || position.y < 0.0 ) {

						worldPos.xyz -= worldFwd * 2.0 * hw;

					}

				#endif

				// project the worldpos
				vec4 clip = projectionMatrix * worldPos;

				// shift the depth of the projected points so the line
				// segments overlap neatly
				vec3 clipPose = ( position.y < 0.5 ) ? ndcStart : ndcEnd;

				// only shift the depth of vertices in front of the camera (#35137)
				if ( clip.w > 0.0 ) clip.z = clipPose.z * clip.w;

			#else

				vec2 offset = vec2( dir.y, - dir.x );
				// undo aspect ratio adjustment
				dir.x /= aspect;
				offset.x /= aspect;

				// sign flip
				if ( position.x < 0.0 ) offset *= - 1.0;

				// endcaps
				if ( position.y < 0.0 ) {

					offset += - dir;

				} else if ( position.y > 1.0 ) {

					offset += dir;

				}

				// adjust for linewidth
				offset *= linewidth;

				// adjust for clip-space to screen-space conversion // maybe resolution should be based on viewport ...
				offset /= resolution.y;

				// select end
				vec4 clip = ( position.y < 0.5 ) ? clipStart : clipEnd;

				// back to clip space
				offset *= clip.w;

				clip.xy += offset;

			#endif

			gl_Position = clip;

			vec4 mvPosition = ( position.y < 0.5 ) ? start : end; // this is an approximation

			#include <logdepthbuf_vertex>
			#include <clipping_planes_vertex>
			#include <fog_vertex>

		}
		`,fragmentShader:`
		uniform vec3 diffuse;
		uniform float opacity;
		uniform float linewidth;

		#ifdef USE_DASH

			uniform float dashOffset;
			uniform float dashSize;
			uniform float gapSize;

		#endif

		varying float vLineDistance;

		#ifdef WORLD_UNITS

			varying vec4 worldPos;
			varying vec3 worldStart;
			varying vec3 worldEnd;

			#ifdef USE_DASH

				varying vec2 vUv;

			#endif

		#else

			varying vec2 vUv;

		#endif

		#include <common>
		#include <color_pars_fragment>
		#include <fog_pars_fragment>
		#include <logdepthbuf_pars_fragment>
		#include <clipping_planes_pars_fragment>

		vec2 closestLineToLine(vec3 p1, vec3 p2, vec3 p3, vec3 p4) {

			float mua;
			float mub;

			vec3 p13 = p1 - p3;
			vec3 p43 = p4 - p3;

			vec3 p21 = p2 - p1;

			float d1343 = dot( p13, p43 );
			float d4321 = dot( p43, p21 );
			float d1321 = dot( p13, p21 );
			float d4343 = dot( p43, p43 );
			float d2121 = dot( p21, p21 );

			float denom = d2121 * d4343 - d4321 * d4321;

			float numer = d1343 * d4321 - d1321 * d4343;

			mua = numer / denom;
			mua = clamp( mua, 0.0, 1.0 );
			mub = ( d1343 + d4321 * ( mua ) ) / d4343;
			mub = clamp( mub, 0.0, 1.0 );

			return vec2( mua, mub );

		}

		void main() {

			float alpha = opacity;
			vec4 diffuseColor = vec4( diffuse, alpha );

			#include <clipping_planes_fragment>

			#ifdef USE_DASH

				if ( vUv.y < - 1.0 || vUv.y > 1.0 ) discard; // discard endcaps

				if ( mod( vLineDistance + dashOffset, dashSize + gapSize ) > dashSize ) discard; // todo - FIX

			#endif

			#ifdef WORLD_UNITS

				float len;

				if ( isOrthographic ) {

					// View rays are parallel to the z axis so the distance reduces to camera-space XY
					vec2 lineDir = worldEnd.xy - worldStart.xy;
					float t = clamp( dot( worldPos.xy - worldStart.xy, lineDir ) / dot( lineDir, lineDir ), 0.0, 1.0 );
					len = length( worldStart.xy + lineDir * t - worldPos.xy );

				} else {

					// Find the closest points on the view ray and the line segment
					vec3 rayEnd = normalize( worldPos.xyz ) * 1e5;
					vec3 lineDir = worldEnd - worldStart;
					vec2 params = closestLineToLine( worldStart, worldEnd, vec3( 0.0, 0.0, 0.0 ), rayEnd );

					vec3 p1 = worldStart + lineDir * params.x;
					vec3 p2 = rayEnd * params.y;
					vec3 delta = p1 - p2;
					len = length( delta );

				}

				float norm = len / linewidth;

				#ifndef USE_DASH

					#ifdef USE_ALPHA_TO_COVERAGE

						float dnorm = fwidth( norm );
						alpha = 1.0 - smoothstep( 0.5 - dnorm, 0.5 + dnorm, norm );

					#else

						if ( norm > 0.5 ) {

							discard;

						}

					#endif

				#endif

			#else

				#ifdef USE_ALPHA_TO_COVERAGE

					// artifacts appear on some hardware if a derivative is taken within a conditional
					float a = vUv.x;
					float b = ( vUv.y > 0.0 ) ? vUv.y - 1.0 : vUv.y + 1.0;
					float len2 = a * a + b * b;
					float dlen = fwidth( len2 );

					if ( abs( vUv.y ) > 1.0 ) {

						alpha = 1.0 - smoothstep( 1.0 - dlen, 1.0 + dlen, len2 );

					}

				#else

					if ( abs( vUv.y ) > 1.0 ) {

						float a = vUv.x;
						float b = ( vUv.y > 0.0 ) ? vUv.y - 1.0 : vUv.y + 1.0;
						float len2 = a * a + b * b;

						if ( len2 > 1.0 ) discard;

					}

				#endif

			#endif

			#include <logdepthbuf_fragment>
			#include <color_fragment>

			gl_FragColor = vec4( diffuseColor.rgb, alpha );

			#include <tonemapping_fragment>
			#include <colorspace_fragment>
			#include <fog_fragment>
			#include <premultiplied_alpha_fragment>

		}
		`};var en=class extends d{constructor(e){super({type:`LineMaterial`,uniforms:ke.clone(P.line.uniforms),vertexShader:P.line.vertexShader,fragmentShader:P.line.fragmentShader,clipping:!0}),this.isLineMaterial=!0,this.setValues(e)}get color(){return this.uniforms.diffuse.value}set color(e){this.uniforms.diffuse.value=e}get worldUnits(){return`WORLD_UNITS`in this.defines}set worldUnits(e){e===!0!==this.worldUnits&&(this.needsUpdate=!0),e===!0?this.defines.WORLD_UNITS=``:delete this.defines.WORLD_UNITS}get linewidth(){return this.uniforms.linewidth.value}set linewidth(e){this.uniforms.linewidth&&(this.uniforms.linewidth.value=e)}get dashed(){return`USE_DASH`in this.defines}set dashed(e){e===!0!==this.dashed&&(this.needsUpdate=!0),e===!0?this.defines.USE_DASH=``:delete this.defines.USE_DASH}get dashScale(){return this.uniforms.dashScale.value}set dashScale(e){this.uniforms.dashScale.value=e}get dashSize(){return this.uniforms.dashSize.value}set dashSize(e){this.uniforms.dashSize.value=e}get dashOffset(){return this.uniforms.dashOffset.value}set dashOffset(e){this.uniforms.dashOffset.value=e}get gapSize(){return this.uniforms.gapSize.value}set gapSize(e){this.uniforms.gapSize.value=e}get opacity(){return this.uniforms.opacity.value}set opacity(e){this.uniforms&&(this.uniforms.opacity.value=e)}get resolution(){return this.uniforms.resolution.value}set resolution(e){this.uniforms.resolution.value.copy(e)}get alphaToCoverage(){return`USE_ALPHA_TO_COVERAGE`in this.defines}set alphaToCoverage(e){this.defines&&(e===!0!==this.alphaToCoverage&&(this.needsUpdate=!0),e===!0?this.defines.USE_ALPHA_TO_COVERAGE=``:delete this.defines.USE_ALPHA_TO_COVERAGE)}},tn=new k,W=new C,nn=class extends se{constructor(){super(),this.isLineSegmentsGeometry=!0,this.type=`LineSegmentsGeometry`,this.setIndex([0,2,1,2,3,1,2,4,3,4,5,3,4,6,5,6,7,5]),this.setAttribute(`position`,new ee([-1,2,0,1,2,0,-1,1,0,1,1,0,-1,0,0,1,0,0,-1,-1,0,1,-1,0],3)),this.setAttribute(`uv`,new ee([-1,2,1,2,-1,1,1,1,-1,-1,1,-1,-1,-2,1,-2],2))}applyMatrix4(e){let t=this.attributes.instanceStart,n=this.attributes.instanceEnd;return t!==void 0&&(t.applyMatrix4(e),n.applyMatrix4(e),t.needsUpdate=!0),this.boundingBox!==null&&this.computeBoundingBox(),this.boundingSphere!==null&&this.computeBoundingSphere(),this}setPositions(e){let t;e instanceof Float32Array?t=e:Array.isArray(e)&&(t=new Float32Array(e));let n=new ue(t,6,1);return this.setAttribute(`instanceStart`,new x(n,3,0)),this.setAttribute(`instanceEnd`,new x(n,3,3)),this.instanceCount=this.attributes.instanceStart.count,this.computeBoundingBox(),this.computeBoundingSphere(),this}setColors(e){let t;e instanceof Float32Array?t=e:Array.isArray(e)&&(t=new Float32Array(e));let n=new ue(t,6,1);return this.setAttribute(`instanceColorStart`,new x(n,3,0)),this.setAttribute(`instanceColorEnd`,new x(n,3,3)),this}fromWireframeGeometry(e){return this.setPositions(e.attributes.position.array),this}fromEdgesGeometry(e){return this.setPositions(e.attributes.position.array),this}fromMesh(e){return this.fromWireframeGeometry(new Ie(e.geometry)),this}fromLineSegments(e){let t=e.geometry;return this.setPositions(t.attributes.position.array),this}computeBoundingBox(){this.boundingBox===null&&(this.boundingBox=new k);let e=this.attributes.instanceStart,t=this.attributes.instanceEnd;e!==void 0&&t!==void 0&&(this.boundingBox.setFromBufferAttribute(e),tn.setFromBufferAttribute(t),this.boundingBox.union(tn))}computeBoundingSphere(){this.boundingSphere===null&&(this.boundingSphere=new m),this.boundingBox===null&&this.computeBoundingBox();let e=this.attributes.instanceStart,t=this.attributes.instanceEnd;if(e!==void 0&&t!==void 0){let n=this.boundingSphere.center;this.boundingBox.getCenter(n);let r=0;for(let i=0,a=e.count;i<a;i++)W.fromBufferAttribute(e,i),r=Math.max(r,n.distanceToSquared(W)),W.fromBufferAttribute(t,i),r=Math.max(r,n.distanceToSquared(W));this.boundingSphere.radius=Math.sqrt(r),isNaN(this.boundingSphere.radius)&&console.error(`THREE.LineSegmentsGeometry.computeBoundingSphere(): Computed radius is NaN. The instanced position data is likely to have NaN values.`,this)}}toJSON(){}},rn=new D,an=new C,on=new C,G=new D,K=new D,q=new D,sn=new C,cn=new j,J=new Ne,ln=new C,un=new k,dn=new m,Y=new D,X,Z;function fn(e,t,n){return Y.set(0,0,-t,1).applyMatrix4(e.projectionMatrix),Y.multiplyScalar(1/Y.w),Y.x=Z/n.width,Y.y=Z/n.height,Y.applyMatrix4(e.projectionMatrixInverse),Y.multiplyScalar(1/Y.w),Math.abs(Math.max(Y.x,Y.y))}function pn(e,t){let n=e.matrixWorld,r=e.geometry,i=r.attributes.instanceStart,a=r.attributes.instanceEnd,o=Math.min(r.instanceCount,i.count);for(let r=0,s=o;r<s;r++){J.start.fromBufferAttribute(i,r),J.end.fromBufferAttribute(a,r),J.applyMatrix4(n);let o=new C,s=new C;X.distanceSqToSegment(J.start,J.end,s,o),s.distanceTo(o)<Z*.5&&t.push({point:s,pointOnLine:o,distance:X.origin.distanceTo(s),object:e,face:null,faceIndex:r,uv:null,uv1:null})}}function mn(e,t,n){let r=t.projectionMatrix,i=e.material.resolution,a=e.matrixWorld,o=e.geometry,s=o.attributes.instanceStart,c=o.attributes.instanceEnd,l=Math.min(o.instanceCount,s.count),u=-t.near;X.at(1,q),q.w=1,q.applyMatrix4(t.matrixWorldInverse),q.applyMatrix4(r),q.multiplyScalar(1/q.w),q.x*=i.x/2,q.y*=i.y/2,q.z=0,sn.copy(q),cn.multiplyMatrices(t.matrixWorldInverse,a);for(let t=0,o=l;t<o;t++){if(G.fromBufferAttribute(s,t),K.fromBufferAttribute(c,t),G.w=1,K.w=1,G.applyMatrix4(cn),K.applyMatrix4(cn),G.z>u&&K.z>u)continue;if(G.z>u){let e=G.z-K.z,t=(G.z-u)/e;G.lerp(K,t)}else if(K.z>u){let e=K.z-G.z,t=(K.z-u)/e;K.lerp(G,t)}G.applyMatrix4(r),K.applyMatrix4(r),G.multiplyScalar(1/G.w),K.multiplyScalar(1/K.w),G.x*=i.x/2,G.y*=i.y/2,K.x*=i.x/2,K.y*=i.y/2,J.start.copy(G),J.start.z=0,J.end.copy(K),J.end.z=0;let o=J.closestPointToPointParameter(sn,!0);J.at(o,ln);let l=xe.lerp(G.z,K.z,o),d=l>=-1&&l<=1,f=sn.distanceTo(ln)<Z*.5;if(d&&f){J.start.fromBufferAttribute(s,t),J.end.fromBufferAttribute(c,t),J.start.applyMatrix4(a),J.end.applyMatrix4(a);let r=new C,i=new C;X.distanceSqToSegment(J.start,J.end,i,r),n.push({point:i,pointOnLine:r,distance:X.origin.distanceTo(i),object:e,face:null,faceIndex:t,uv:null,uv1:null})}}}var hn=class extends M{constructor(e=new nn,t=new en({color:Math.random()*16777215})){super(e,t),this.isLineSegments2=!0,this.type=`LineSegments2`}computeLineDistances(){let e=this.geometry,t=e.attributes.instanceStart,n=e.attributes.instanceEnd,r=new Float32Array(2*t.count);for(let e=0,i=0,a=t.count;e<a;e++,i+=2)an.fromBufferAttribute(t,e),on.fromBufferAttribute(n,e),r[i]=i===0?0:r[i-1],r[i+1]=r[i]+an.distanceTo(on);let i=new ue(r,2,1);return e.setAttribute(`instanceDistanceStart`,new x(i,1,0)),e.setAttribute(`instanceDistanceEnd`,new x(i,1,1)),this}raycast(e,t){let n=this.material.worldUnits,r=e.camera;if(r===null&&!n&&console.error(`LineSegments2: "Raycaster.camera" needs to be set in order to raycast against LineSegments2 while worldUnits is set to false.`),n===!1&&(this.material.resolution.x===0||this.material.resolution.y===0))return;let i=e.params.Line2===void 0?0:e.params.Line2.threshold||0;X=e.ray;let a=this.matrixWorld,o=this.geometry,s=this.material;Z=s.linewidth+i,o.boundingSphere===null&&o.computeBoundingSphere(),dn.copy(o.boundingSphere).applyMatrix4(a);let c;if(c=n?Z*.5:fn(r,Math.max(r.near,dn.distanceToPoint(X.origin)),s.resolution),dn.radius+=c,X.intersectsSphere(dn)===!1)return;o.boundingBox===null&&o.computeBoundingBox(),un.copy(o.boundingBox).applyMatrix4(a);let l;l=n?Z*.5:fn(r,Math.max(r.near,un.distanceToPoint(X.origin)),s.resolution),un.expandByScalar(l),X.intersectsBox(un)!==!1&&(n?pn(this,t):mn(this,r,t))}onBeforeRender(e){let t=this.material.uniforms;t&&t.resolution&&(e.getViewport(rn),this.material.uniforms.resolution.value.set(rn.z,rn.w))}},gn=3.5,_n=200,vn={polygonOffset:!0,polygonOffsetFactor:-4,polygonOffsetUnits:-200},yn=.22,bn=2e3;function xn(e,t){let n=Be()&&e.length/6>_n;return[!0,!1].map(r=>{let i={depthTest:!r,transparent:!0,opacity:r?yn:1},a=n?wn(e,t,i):Tn(e,t,i);return a.renderOrder=r?1:2,a})}function Sn(e,t){return e.length<=9*bn?xn(Cn(e),t):[]}function Cn(e){let t=[];for(let n=0;n<e.length;n+=9){let[r,i,a]=[0,3,6].map(t=>e.subarray(n+t,n+t+3));for(let e of[r,i,i,a,a,r])t.push(...e??[])}return new Float32Array(t)}function wn(e,t,n){let r=new Fe().setAttribute(`position`,new T(e,3));return new E(r,new Ce({color:t,...n}))}function Tn(e,t,n){let r=new nn;return r.setPositions(e),new hn(r,new en({color:new w(t).getHex(),linewidth:gn,...n,...vn}))}function En(e){return new S({color:e,side:2,transparent:!0,opacity:.85,polygonOffset:!0,polygonOffsetFactor:-1,polygonOffsetUnits:-1})}var Dn=[`#4c8dd6`,`#f0a33a`,`#56a878`,`#c96a9e`,`#8b7fd1`,`#d9c24a`,`#5fb6c4`,`#b5674a`];function On(e){return Dn[e%Dn.length]??``}function kn(e){let t=e.index?e.toNonIndexed():e,n=Jt(t.getAttribute(`position`).array);return t.setAttribute(`normal`,new T(n,3)),t!==e&&e.dispose(),t}var An=e({Picture:()=>Rn,TO_MILLIMETERS:()=>Q,isInside:()=>$,parsePicture:()=>Un}),Q=new j().set(1e3,0,0,0,0,0,-1e3,0,0,1e3,0,0,0,0,0,1),jn=`meshhub:defects`,Mn=3e4,Nn={side:2,polygonOffset:!0,polygonOffsetUnits:1,polygonOffsetFactor:1},Pn=.35,Fn=.04,In=.55;function Ln(){return Be()?new i(Nn):new s({...Nn,roughness:In,metalness:0})}var Rn=class{content;facts;root=new y;defects=new y;changes=new y;box=new k;parts=[];meshes=[];motion=new j;placement=new j;isAligned=!1;surfaces=[];clay=Ln();wire=new S({wireframe:!0,transparent:!0,opacity:.35,color:`#000`});inside=new S({side:1});edge=new Ce({transparent:!0,opacity:.55});materials=new Map;pieces=new Map;hasAppearance;constructor(e,t){this.content=e,this.facts=t;let n=e;this.root.matrixAutoUpdate=!1,this.root.matrix.copy(Q);let r=n.children.find(({name:e,userData:t})=>Bn(e,t));r?.removeFromParent(),this.changes.matrixAutoUpdate=!1,this.root.add(n,this.defects,this.changes),this.root.updateMatrixWorld(!0),this.box.setFromObject(n),this.collectParts(n,0),n.traverse(e=>e instanceof M&&this.meshes.push(e));for(let e of this.meshes)this.addSurface(e);this.hasAppearance=ze(t.inspection.model.features);for(let e of r?.children??[])this.addDefect(e);this.root.updateMatrixWorld(!0)}alignTo(e,t){let n=Ht(t)??new j,r=Gt(e.measure(n),this.box);r&&n.premultiply(r),this.motion.copy(n),this.isAligned=!1,this.setAligned(!0)}listPoints(e){this.root.updateMatrixWorld(!0);let t=this.meshes.reduce((e,{geometry:t})=>e+t.getAttribute(`position`).count,0),n=Math.max(1,Math.ceil(t/e)),r=[],i=new C;for(let{geometry:e,matrixWorld:t}of this.meshes){let a=e.getAttribute(`position`);for(let e=0;e<a.count;e+=n)r.push(...i.fromBufferAttribute(a,e).applyMatrix4(t).toArray())}return r}measure(e){let t=this.root.matrix.clone();this.root.matrix.multiplyMatrices(e,Q),this.root.updateMatrixWorld(!0);let n=this.enclose(this.content);return this.root.matrix.copy(t),this.root.updateMatrixWorld(!0),n}enclose(e){let t=new k,n=new C;for(let{mesh:r,own:i}of this.surfaces){if(!$(r,e))continue;let a=i.getAttribute(`position`);for(let e=0;e<a.count;e++)t.expandByPoint(n.fromBufferAttribute(a,e).applyMatrix4(r.matrixWorld))}return t}setAligned(e){e!==this.isAligned&&(this.isAligned=e,this.place(e?this.motion.clone().invert():new j))}place(e){e.equals(this.placement)||(this.placement.copy(e),this.root.matrix.multiplyMatrices(e,Q),this.root.updateMatrixWorld(!0),this.box.copy(this.enclose(this.content)))}comparedMatrix(e){return this.root.updateMatrixWorld(!0),this.comparedRoot().multiply(this.root.matrixWorld.clone().invert()).multiply(e.matrixWorld)}comparedRoot(){return this.motion.clone().invert().multiply(Q)}get scale(){return this.isAligned?Math.cbrt(Math.abs(this.motion.determinant())):1}get isInPlace(){return this.motion.equals(new j)}copyVisibility({parts:e}){e.length===this.parts.length&&this.parts.forEach(({object:t},n)=>t.visible=e[n]?.object.visible??!0)}collectParts(e,t){for(let n of e.children){let e=Hn(n);e!==0&&(this.parts.push({name:String(n.userData.name??``),depth:t,triangles:e,object:n}),Vn(n)||this.collectParts(n,t+1))}}describePart({object:e}){let t=this.enclose(e).getSize(new C).toArray(),n=new Set;for(let{mesh:t,colored:r}of this.hasAppearance?this.surfaces:[])if($(t,e)&&!t.geometry.hasAttribute(`color`))for(let{map:e,userData:t}of[r].flat())e||n.add(`#${String(t.color)}`);return{size:t,colors:[...n]}}findPart(e){let t=this.parts.findLastIndex(({object:t})=>$(e,t));return t<0?null:t}addSurface(e){let t=`normal`in e.geometry.attributes,n=e=>this.toShaded(e),r=Array.isArray(e.material)?e.material.map(n):n(e.material),i=!t&&!this.facts.is_reduced&&this.facts.triangles<=Mn?new ne(e.geometry,30):null;t||(e.geometry=kn(e.geometry));let a=new M(e.geometry,this.wire),o=new M(e.geometry,this.inside);a.visible=o.visible=!1,e.add(a,o);let s=i!==null&&$t(i.getAttribute(`position`).array)?new E(i,this.edge):null;s&&e.add(s),this.surfaces.push({mesh:e,own:e.geometry,edges:s,colored:r,wire:a,inside:o})}get geometries(){return this.surfaces.map(({own:e})=>e)}setDraft(e){this.surfaces.forEach(({mesh:t,own:n,edges:r,wire:i,inside:a},o)=>{t.geometry!==n&&zn(t.geometry),t.geometry=i.geometry=a.geometry=e?.[o]??n,r&&(r.visible=e===null)})}toShaded(e){let t=this.materials.get(e);if(t)return t;e.flatShading=!1,e.opacity=Math.max(e.opacity,Pn),e.userData.color=e.color.getHexString(),e.color.addScalar(Math.max(0,Fn-Math.max(...e.color.toArray())));let n=Be()?new i({name:e.name,userData:e.userData,color:e.color,map:e.map,alphaMap:e.alphaMap,transparent:e.transparent,opacity:e.opacity,alphaTest:e.alphaTest,vertexColors:e.vertexColors,...Nn}):Object.assign(e,Nn);return this.materials.set(e,n),n}addDefect(e){let t=e.userData.kind??e.name;if(!(t in Re))return;let n=Re[t];e.traverse(e=>{let t=e.geometry,r=t?.getAttribute(`position`);r&&(e instanceof E?Wn(this.defects,xn(r.array,n)):e instanceof M&&(this.defects.add(new M(t,En(n))),Wn(this.defects,Sn(r.array,n))))})}colorPieces(){let e=[...new Set(this.meshes.map(e=>this.findPart(e)))];if(!(e.length<2))for(let t of this.meshes){let n=Ln();n.color.set(On(e.indexOf(this.findPart(t)))),this.pieces.set(t,n)}}setChanges(e,t){for(let e of[...this.changes.children])e.geometry.dispose(),e.material.dispose(),e.removeFromParent();if(e.length===0)return;this.changes.matrix.copy(this.comparedRoot()).invert();let n=new Fe().setAttribute(`position`,new T(e,3));this.changes.add(new M(n,En(t)))}apply(e,t){let n=t.length>0,r=Ve(this.facts).length>0;this.clay.color.set(e.clay),this.inside.color.set(e.cut),this.edge.color.set(e.edge);let i=e.textures&&this.hasAppearance||this.facts.scale!==null;for(let{mesh:a,colored:o,wire:s,inside:c}of this.surfaces){a.material=i?o:this.pieces.get(a)??this.clay,s.visible=e.wireframe,c.visible=n&&!r;for(let e of[a.material].flat())e.side=n&&!r?0:2,e.clippingPlanes=t}this.wire.clippingPlanes=this.inside.clippingPlanes=this.edge.clippingPlanes=t,this.defects.visible=e.defects,this.changes.visible=e.changes;for(let e of[...this.defects.children,...this.changes.children])e.material.clippingPlanes=t}dispose(){this.setDraft(null),this.root.traverse(e=>{let t=e;t.geometry&&zn(t.geometry);for(let e of[t.material??[]].flat())e.dispose()});for(let e of[this.clay,this.wire,this.inside,this.edge,...this.pieces.values()])e.dispose();for(let[e,t]of this.materials)e.dispose(),t.map?.image instanceof ImageBitmap&&t.map.image.close(),t.map?.dispose(),t.dispose();this.root.removeFromParent()}};function zn(e){e.dispose(),e.boundsTree=void 0}function Bn(e,t){return(t.name??e)===jn}function Vn(e){return e.children.every(e=>e instanceof M&&!(`name`in e.userData))}function Hn(e){let t=0;return e.traverse(e=>{if(!(e instanceof M))return;let{index:n,attributes:r}=e.geometry;t+=(n?.count??r.position?.count??0)/3}),t}async function Un(e){let{scene:t,asset:n}=await new Ge().parseAsync(e,``),{extras:r}=n;if(!r?.meshhub)throw Error(`the preview holds no facts`);return new Rn(t,r.meshhub)}function $(e,t){for(let n=e;n;n=n.parent)if(n===t)return!0;return!1}function Wn(e,t){for(let n of t)e.add(n)}export{Rt as a,An as i,Q as n,Ge as o,$ as r,Rn as t};