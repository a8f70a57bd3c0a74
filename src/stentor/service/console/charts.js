// Small charts on canvases of their own: a line over the last minutes, and a histogram of a past.

function prepared(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return [context, width, height];
}

const colourOf = (canvas, name) => getComputedStyle(canvas).getPropertyValue(name).trim();

/** Draw one or two lines of values over the whole width, the newest at the right. */
export function drawLines(canvas, lines, most = 120) {
  const [context, width, height] = prepared(canvas);
  const largest = Math.max(1e-9, ...lines.flat());
  const top = niceAbove(largest);
  const colours = [colourOf(canvas, "--accent"), colourOf(canvas, "--warm")];
  context.font = "10px system-ui, sans-serif";
  context.strokeStyle = colourOf(canvas, "--line");
  context.fillStyle = colourOf(canvas, "--soft");
  context.beginPath();
  context.moveTo(0, 13.5);
  context.lineTo(width, 13.5);
  context.stroke();
  context.fillText(top.toLocaleString("en").replaceAll(",", "\u202f"), 6, 11);
  lines.forEach((values, number) => {
    const shown = values.slice(-most);
    if (shown.length < 2) return;
    const x = (index) => width - ((shown.length - 1 - index) / (most - 1)) * width;
    const y = (value) => height - 3 - (value / top) * (height - 17);
    context.beginPath();
    shown.forEach((value, index) => context.lineTo(x(index), y(value)));
    context.strokeStyle = colours[number];
    context.lineWidth = 1.6;
    context.setLineDash(number ? [4, 3] : []);
    context.stroke();
    context.setLineDash([]);
    if (number) return;
    context.lineTo(width, height);
    context.lineTo(x(0), height);
    context.globalAlpha = 0.14;
    context.fillStyle = colours[0];
    context.fill();
    context.globalAlpha = 1;
  });
}

/** 1, 2 or 5 times a power of ten, at least `value`. */
export function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const found = [1, 2, 5, 10].find((each) => each * power >= value * 0.999) * power;
  return Number(found.toPrecision(3));
}

/** Draw bars of `counts`, those up to `share` of the width in the accent's colour, and a hand there. */
export function drawHistogram(canvas, counts, share) {
  const [context, width, height] = prepared(canvas);
  const largest = Math.max(1, ...counts);
  const step = width / counts.length;
  const [past, coming] = [colourOf(canvas, "--accent"), colourOf(canvas, "--line")];
  counts.forEach((value, index) => {
    const tall = value ? Math.max(2, (value / largest) * (height - 8)) : 1;
    context.fillStyle = (index + 0.5) / counts.length <= share ? past : coming;
    context.fillRect(index * step, height - tall, Math.max(1, step - 1), tall);
  });
  context.fillStyle = colourOf(canvas, "--text");
  context.fillRect(Math.min(width - 2, share * width - 1), 0, 2, height);
  context.beginPath();
  context.arc(Math.min(width - 5, Math.max(5, share * width)), 5, 5, 0, 2 * Math.PI);
  context.fill();
}
