// What all other scripts build on: elements made of text, never of HTML, and the functions that callbacks call here.
(function () {
  "use strict";

  /** An element with a class and a text; whatever the text holds, it is shown as text. */
  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  /** Make functions known as those of `ClientsideFunction("explorer", name)`. */
  function answer(functions) {
    window.dash_clientside = Object.assign({}, window.dash_clientside);
    window.dash_clientside.explorer = Object.assign({}, window.dash_clientside.explorer, functions);
  }

  window.neuronElements = { element, answer };
})();
